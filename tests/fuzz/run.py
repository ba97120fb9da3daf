#!/usr/bin/env python3
"""Runs libFuzzer on every fuzz target in the table of tests/fuzz/targets.cpp. The number of targets that run at the same
time is the number of processors.

   tests/fuzz/run.py PROGRAM MINUTES [TARGET]      called by `make fuzz`

MINUTES limits the duration of the whole run. Inputs that reach new code are kept in build/fuzz/inputs/TARGET for the next
run. Inputs that cause a crash, a hang, a leak or memory use over 2 GiB are written to build/fuzz/crashes. If there is such
an input, the exit code is 1.
"""
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

most_crashes = 5  # limit per target; each crash ends the process, which is then restarted


def names():
    with open("tests/fuzz/targets.cpp") as file:
        return re.findall(r'\{"(\w+)", "R\d+",', file.read())


class Fuzzed:
    """Fuzzes one target. After a crash, restarts the program, until the target's time limit is reached."""

    def __init__(self, program, name, seconds):
        self.program, self.name, self.seconds = os.path.abspath(program), name, seconds
        self.runs, self.coverage, self.crashes, self.said = 0, 0, [], ""

    def fuzz(self):
        below = os.path.dirname(self.program)
        inputs, crashes = (os.path.join(below, *folder) for folder in (("inputs", self.name), ("crashes",)))
        os.makedirs(inputs, exist_ok=True)
        os.makedirs(crashes, exist_ok=True)
        environment = {**os.environ, "FUZZ_TARGET": self.name, "FUZZ_ROOT": os.getcwd(), "FUZZ_INPUTS": inputs}
        end = time.monotonic() + self.seconds
        while (left := round(end - time.monotonic())) > 0 and len(self.crashes) < most_crashes:
            command = [self.program, inputs, f"-max_total_time={left}", "-timeout=20", "-rss_limit_mb=2048",
                       "-max_len=65536", "-print_final_stats=1", f"-artifact_prefix={crashes}/{self.name}-"]
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, errors="replace", check=False)
            self.runs += sum(map(int, re.findall(r"stat::number_of_executed_units: *(\d+)", done.stdout)))
            self.coverage = max([self.coverage, *map(int, re.findall(r"\bcov: (\d+)", done.stdout))])
            if done.returncode == 0:
                break
            written = re.findall(r"Test unit written to (\S+)", done.stdout)
            self.crashes += written or ["before the first input"]
            self.said = done.stdout[-4000:]


def main():
    program, minutes, only = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    chosen = [name for name in names() if not only or name in only]
    if not chosen:
        sys.exit(f"error: unknown target\n  TARGET={' '.join(only)}\n  the targets: {', '.join(names())}")
    at_once = min(len(os.sched_getaffinity(0)), len(chosen))
    fuzzed = [Fuzzed(program, name, 60 * minutes * at_once / len(chosen)) for name in chosen]
    waiting = list(fuzzed)

    def work():
        while True:
            try:
                one = waiting.pop(0)
            except IndexError:
                return
            one.fuzz()
            print(f"{one.name:<16}{one.runs:>10} runs{one.coverage:>8} covered{len(one.crashes):>4} crashes", flush=True)

    threads = [threading.Thread(target=work) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"\n{'target':<16}{'runs':>10}{'coverage':>10}{'crashes':>9}")
    for one in fuzzed:
        print(f"{one.name:<16}{one.runs:>10}{one.coverage:>10}{len(one.crashes):>9}")
    for one in fuzzed:
        if one.crashes:
            print(f"\n{one.name}: {', '.join(one.crashes)}\n{one.said}")
    sys.exit(any(one.crashes for one in fuzzed))


if __name__ == "__main__":
    main()
