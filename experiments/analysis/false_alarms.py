#!/usr/bin/python3
"""Counts how often `chorale report B.h5 --check A.h5` calls a program slower than itself. According to docs/experiments.md,
this happens at most one time in twenty.

   experiments/analysis/false_alarms.py --comparisons 100 --out alarms

Each comparison benchmarks several cases of a program against the same program (`bench --against`). The result is two records
whose launches alternate, and the script checks one record against the other. It also checks each record against the record
of the previous comparison, which shows the effect of changes in the machine. A comparison counts once, even if several of
its cases are called slower. Records are kept in the folder, so an interrupted script continues from them. A comparison takes
12 launches, about 10 s on a quiet machine.
"""
import argparse
import collections
import os
import subprocess
import sys

cases = ["all_reduce", "all_gather", "--backend", "shm", "-b", "1K", "-e", "64K", "-f", "8", "--in-place", "no", "--ceiling",
         "0"]
answers = {3: "slower", 0: "not slower", 2: "too few runs to tell"}  # keys: exit codes


def measure(asked, record, seed):
    words = [asked.program, "bench", *cases, "-n", str(asked.repetitions), "--ranks-per-launch", str(asked.ranks),
             "--launches", str(asked.launches),
             "--seed", str(seed), "--against", os.path.realpath(asked.program), "--out", record]
    result = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with {result.returncode}\n{result.stderr}")


def check(asked, record, reference):
    result = subprocess.run([asked.program, "report", record, "--check", reference, "--threshold", asked.threshold],
                            capture_output=True, text=True)
    if result.returncode not in answers:
        sys.exit(f"report {record} --check {reference} ended with {result.returncode}\n{result.stderr}")
    return answers[result.returncode]


def tally(kind, counts):
    return f"{kind}: " + ", ".join(f"{counts[answer]} {answer}" for answer in answers.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="folder of the records")
    parser.add_argument("--program", default="build/chorale")
    parser.add_argument("--comparisons", type=int, default=100)
    parser.add_argument("--launches", type=int, default=6, help="launches of each record")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=50, help="timed calls of each case in a launch")
    parser.add_argument("--threshold", default="5%")
    asked = parser.parse_args()
    os.makedirs(asked.out, exist_ok=True)
    found = {"launches that alternate": collections.Counter(), "one record after the other": collections.Counter()}
    before = None
    for number in range(1, asked.comparisons + 1):
        record, twin = f"{asked.out}/{number}.h5", f"{asked.out}/{number}.against.h5"
        if not os.path.exists(twin):  # this record is the last file that a comparison writes
            if os.path.exists(record):
                os.remove(record)
            measure(asked, record, number)
        pairs = {"launches that alternate": twin}
        if before:
            pairs["one record after the other"] = before
        for kind, reference in pairs.items():
            found[kind][check(asked, record, reference)] += 1
        before = record
        print(f"{number}/{asked.comparisons}", *map(tally, found, found.values()), sep="  ", flush=True)


if __name__ == "__main__":
    main()
