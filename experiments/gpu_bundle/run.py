#!/usr/bin/env python3
"""Tests and times this build on a machine with a GPU, in ten minutes. Prints a table: part, result, figure, target.

   ./run                           all parts; each part adds its lines to table.txt and log.txt in gpu-results
   ./run --only kernels,exact      some parts
   ./run --minutes 25              a longer limit than ten minutes
   ./run --emulated                on an emulated GPU instead of a real one: tests the bundle, not the kernels

If a part fails, the next part still runs. If too little time remains for a part, it is left out, and the table says so.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback

import machine
import parts
from machine import Failure

here = os.path.dirname(os.path.abspath(__file__))


class Session:
    """The state that the parts share: programs and their environment, the log, and the remaining time."""

    def __init__(self, root, options, log):
        self.root, self.options, self.log = root, options, log
        self.began, self.part_ends = time.monotonic(), float("inf")
        self.environment = machine.environment_for(root)
        # Names the plugin explicitly, because tests that search for a plugin without success skip the device.
        self.environment["CHORALE_CUDA_PLUGIN"] = self.path("build", "emulated" if options.emulated else "",
                                                            "chorale_cuda.so")
        self.python, self.torch_version = (None, None) if options.emulated else machine.python_with_cuda()
        self.no_gpu = machine.why_no_gpu(self)

    def left(self):
        return max(0.0, self.options.minutes * 60 - (time.monotonic() - self.began))

    def path(self, *names):
        return os.path.join(self.root, *names)

    def run(self, command, check=True, environment=None):
        """Runs a command within the time limit of its part; returns its output."""
        seconds = max(1.0, min(self.part_ends - time.monotonic(), 600))
        self.log.write(f"$ {' '.join(command)}\n")
        self.log.flush()
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, cwd=self.root, start_new_session=True,
                                       env=self.environment if environment is None else environment)
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                machine.end_group(process)
            said.seek(0)
            text = said.read()
        self.log.write(text + "\n")
        if code is None:
            raise Failure(f"not finished after {seconds:.0f} s: {os.path.basename(command[0])}")
        if check and code != 0:
            last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
            raise Failure(f"exit code {code}: {last.strip()[:100]}")
        return text

    def mpirun(self, ranks, command, check=True):
        return self.run([*machine.mpirun(self.root), "-n", str(ranks), *command], check)

    def train(self, device, words, ranks=1):
        """Trains in a new folder; returns the folder of the run."""
        folder = tempfile.mkdtemp(dir=self.root)
        command = [self.path("build/chorale"), "train", "--device", device, "--run-dir", folder, *words]
        self.mpirun(ranks, command) if ranks > 1 else self.run(command)
        return os.path.join(folder, "latest")

    @staticmethod
    def column(folder, name):
        """Returns a column of a run's record: one value per step."""
        with open(os.path.join(folder, "metrics.jsonl")) as lines:
            return [row[name] for row in map(json.loads, lines) if name in row]

    def peer(self, name, **settings):
        """Returns the output of a PyTorch program of peers/. The program uses the machine's own libraries."""
        return self.run([self.python, self.path("experiments/peers", name)], environment={**os.environ, **settings})


def show(rows, file):
    heads = ("part", "result", "figure", "target")
    widths = [max(len(row[c]) for row in [heads, *rows]) for c in range(3)]
    print(file=file)
    for row in [heads, *rows]:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]]).rstrip(), file=file)


def attempt(part, session):
    """Runs a part and returns its result and figure. If it raises an error, the error text is the result."""
    if part.needs_gpu and session.no_gpu:
        return "cannot run", session.no_gpu
    if part.needs_torch and not session.python:
        return "cannot run", "no PyTorch that sees this device"
    if part.name in session.options.fail:
        return "FAILED", "on purpose (--fail)"
    if session.left() < part.least_seconds:
        return "left out", f"{session.left():.0f} s were left, it takes {part.least_seconds} or more"
    session.part_ends = time.monotonic() + min(part.most_seconds * max(1.0, session.options.minutes / 10), session.left())
    try:
        with machine.Watch(session.environment) as watch:
            result, figure = part.body(session)
        return result, figure + (f"; {watch.summary()}" if watch.summary() and part.needs_torch else "")
    except Failure as failure:
        return "FAILED", str(failure)
    except Exception as error:  # the remaining parts must still run
        session.log.write(traceback.format_exc())
        return "FAILED", f"{type(error).__name__}: {error}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    split = lambda text: text.split(",")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--only", type=split, default=[], metavar="PARTS",
                        help=", ".join(part.name for part in parts.all_parts))
    parser.add_argument("--fail", type=split, default=[], metavar="PARTS",
                        help="let these parts fail on purpose, to test that the others still run")
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--results", default="gpu-results", help="folder for table.txt and log.txt")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("error: terminated"))  # so that run() ends the programs it started
    known = [part.name for part in parts.all_parts]
    if unknown := [name for name in options.only + options.fail if name not in known]:
        parser.error(f"no part is called {unknown[0]}; there are {', '.join(known)}")
    os.makedirs(options.results, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory() as root, open(os.path.join(options.results, "log.txt"), "w") as log:
        print("unpacking …", flush=True)
        with tarfile.open(os.path.join(here, "root.tar.gz")) as archive:
            archive.extractall(root)
        session = Session(root, options, log)
        for part in parts.all_parts:
            if options.only and part.name not in options.only:
                continue
            began = time.monotonic()
            print(f"{part.name} …", end=" ", flush=True)
            result, figure = attempt(part, session)
            rows.append((part.name, result, figure, part.target))
            print(f"{result}, {time.monotonic() - began:.0f} s", flush=True)
            with open(os.path.join(options.results, "table.txt"), "w") as file:
                show(rows, file)
    show(rows, sys.stdout)
    sys.exit(any(row[1] == "FAILED" for row in rows))


if __name__ == "__main__":
    main()
