#!/usr/bin/python3
"""Draws the time that each rank spends in each phase of a step, as stacked bars. The report has the same figure.

   experiments/analysis/step_time.py runs/latest/run.h5 --out step_time.svg
   experiments/analysis/step_time.py suite.h5 --group /runs/dp4-r1 --skip 5

The first steps are left out, because caches are still cold. The time of communication that overlaps computation does not
lengthen the step, so it is printed but not drawn.
"""
import argparse

import xarray

from figure import Figure, colors


def mean_phases(path, group, skip):
    """Returns {phase: [milliseconds per step, by rank]}."""
    with xarray.open_dataset(path, group=f"{group.rstrip('/')}/phases") as phases:
        times = phases.phase_time[min(skip, phases.sizes["step"] - 1):].mean("step") * 1e3
        names = phases.phase.attrs["flag_meanings"].split()
        return {name: times.values[:, i] for i, name in enumerate(names)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--group", default="", help="the run of a suite: /runs/<id>")
    parser.add_argument("--skip", type=int, default=2, help="steps to leave out at the beginning")
    parser.add_argument("--out", default="step_time.svg")
    asked = parser.parse_args()
    phases = mean_phases(asked.file, asked.group, asked.skip)
    overlapping = ("comm_hidden", "file_exposed", "file_hidden")  # parts of the other phases
    drawn = {name: times for name, times in phases.items() if name not in overlapping}
    ranks = len(phases["forward"])
    whole = [sum(times[rank] for times in drawn.values()) for rank in range(ranks)]
    figure = Figure("Where a step's time goes", "rank", "ms", (-0.5, ranks - 0.5), (0, max(whole)))
    for rank in range(ranks):
        figure.text(figure.x(rank), figure.y(0) + 18, rank, anchor="middle")
        low = 0
        for (name, times), color in zip(drawn.items(), colors):
            figure.bar(rank, 0.7, low, low + times[rank], color, f"rank {rank}, {name}: {times[rank]:.2f} ms")
            low += times[rank]
    for name, color in zip(drawn, colors):
        figure.entry(name, color)
    print("rank  " + "  ".join(f"{name:>12}" for name in phases) + "  (ms)")
    for rank in range(ranks):
        print(f"{rank:4}  " + "  ".join(f"{times[rank]:12.3f}" for times in phases.values()))
    figure.save(asked.out)
