#!/usr/bin/python3
"""Draws the loss of several runs by step. An example of how to read records in Python.

   experiments/analysis/loss_curves.py runs/*/run.h5 --out loss.svg        single runs
   experiments/analysis/loss_curves.py runs/latest/run.h5                  all runs of a suite

Also prints a table of each run's first and last loss.
"""
import argparse

import h5py

from figure import Figure, colors, dashes


def runs_in(path):
    """Returns (name, group) of each run in a record, which has one run or a suite of runs."""
    file = h5py.File(path)
    if "runs" in file:
        return list(file["runs"].items())
    return [(file.attrs["run_id"].decode(), file)]


def curve(run):
    train = run["train"]
    rows = int(train.attrs["committed_rows"])  # the number of complete rows; later rows can be incomplete
    return [(int(step), float(loss)) for step, loss in zip(train["step"][:rows], train["loss"][:rows]) if loss == loss]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--out", default="loss.svg")
    asked = parser.parse_args()
    found = [(name, curve(run)) for path in asked.files for name, run in runs_in(path) if "train" in run]
    found = [(name, points) for name, points in found if points]
    if not found:
        raise SystemExit("no run with a training step in these files")
    steps, losses = zip(*[point for _, points in found for point in points])
    figure = Figure("Training loss", "step", "nats per token", (min(steps), max(steps)), (min(losses), max(losses)))
    for step in sorted({min(steps), max(steps)}):
        figure.text(figure.x(step), figure.y(min(losses)) + 18, step, anchor="middle")
    for i, (name, points) in enumerate(found):
        look = colors[i % len(colors)], dashes[i // len(colors) % len(dashes)]
        figure.line(points, *look)
        figure.entry(name[-22:], *look)
        print(f"{name:40} {len(points):6} steps  loss {points[0][1]:.4f} → {points[-1][1]:.4f}")
    figure.save(asked.out)
