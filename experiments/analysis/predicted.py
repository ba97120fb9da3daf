#!/usr/bin/python3
"""Compares the predicted and the measured step time of each run, from the records of `compare`.

   experiments/analysis/predicted.py runs/latest/run.h5 …        one table for each suite

The measured time of a run is the median over its repetitions. The interval is the same as in the table of `compare`. With
six repetitions or more, it is the 95 % interval of the median; with two to five, their range; with one, the interval of the
median of the steps. Two lines below each table have:

   within 15 %      the number of predictions that differ from the measurement by at most 15 %
   Kendall's tau    over the pairs of runs whose intervals do not overlap: the share of pairs predicted in the measured
                    order, minus the share predicted in the opposite order. Equal predictions count in neither share
"""
import argparse
import itertools
import math
import statistics

import h5py

PREDICTED = "predicted_step_time"  # the column of /summary, in seconds; NaN for a run without a prediction
near = 0.15


def interval(values):
    """Returns the 95 % interval of the median: two of the values, which are the extremes if there are fewer than six."""
    values = sorted(values)
    below, left_out = 0, 0  # left_out: number of values on each side of the interval
    for heads in range(len(values)):
        below += math.comb(len(values), heads) / 2 ** len(values)
        if below > 0.025:
            left_out = max(heads - 1, 0)
            break
    return values[left_out], values[-1 - left_out]


class Row:
    """The repetitions of one run: their median step times, their predictions, and the steps of the last repetition."""

    def __init__(self, name):
        self.name, self.times, self.predictions, self.steps = name, [], [], []

    @property
    def measured(self):
        return statistics.median(self.times)

    @property
    def predicted(self):
        return statistics.median(self.predictions)

    @property
    def ratio(self):
        return self.predicted / self.measured

    @property
    def interval(self):
        return interval(self.times if len(self.times) > 1 else self.steps)


def steps_of(run, warm_up):
    train = run["train"]
    steps = [float(seconds) for seconds in train["step_time"][:int(train.attrs["committed_rows"])]]
    return steps[warm_up if warm_up >= 0 else min(10, (len(steps) + 9) // 10):] or steps


def rows_of(file):
    """Returns the finished training runs of a suite, in the order of the record."""
    summary, rows = file["summary"], {}
    warm_up = int(file.attrs.get("warm_up", -1))
    texts = [summary[name].asstr()[:] for name in ("id", "command", "status")]
    for row, (run_id, command, status) in enumerate(zip(*texts)):
        if command != "train" or status != "ok":
            continue
        name = run_id.rpartition("-r")[0]
        found = rows.setdefault(name, Row(name))
        found.times.append(float(summary["step_time"][row]))
        found.predictions.append(float(summary[PREDICTED][row]) if PREDICTED in summary else math.nan)
        found.steps = steps_of(file["runs"][run_id], warm_up)
    return list(rows.values())


def sign(number):
    return (number > 0) - (number < 0)


def kendall(rows):
    """Returns tau over the pairs with separate intervals (NaN if there are none), their number, and all pairs' number."""
    pairs = list(itertools.combinations(rows, 2))
    apart = [(a, b) for a, b in pairs if a.interval[1] < b.interval[0] or b.interval[1] < a.interval[0]]
    agreed = sum(sign(b.measured - a.measured) * sign(b.predicted - a.predicted) for a, b in apart)
    return agreed / len(apart) if apart else math.nan, len(apart), len(pairs)


def show(path, file):
    print(f"{path}: {file['config/question'].asstr()[()]}" if "config/question" in file else path)
    rows = rows_of(file)
    without = [row.name for row in rows if not row.predicted > 0]
    rows = sorted((row for row in rows if row.predicted > 0), key=lambda row: row.measured)
    if without:
        print(f"without a prediction ({PREDICTED}): {', '.join(without)}")
    if not rows:
        return print("no run to compare")
    wide = max(len(row.name) for row in [*rows, Row("run")])
    print(f"{'run':{wide}}  measured  interval              predicted  predicted/measured")
    for row in rows:
        low, high = row.interval
        print(f"{row.name:{wide}}  {row.measured:6.4f} s  {low:6.4f} to {high:6.4f} s  {row.predicted:7.4f} s  "
              f"{row.ratio:.2f}{'' if abs(row.ratio - 1) <= near else '  off'}")
    good = sum(abs(row.ratio - 1) <= near for row in rows)
    tau, apart, pairs = kendall(rows)
    print(f"within {near:.0%}: {good} of {len(rows)} runs ({good / len(rows):.0%})")
    print(f"Kendall's tau: {tau:.2f} over {apart} of {pairs} pairs; the intervals of the others overlap" if apart else
          "Kendall's tau: unknown, because the intervals of every pair overlap")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="records of suites: runs/<id>/run.h5")
    for number, path in enumerate(parser.parse_args().files):
        with h5py.File(path) as file:
            if "summary" not in file:
                raise SystemExit(f"{path} is not the record of a suite: it has no /summary")
            print(end="\n" if number else "")
            show(path, file)
