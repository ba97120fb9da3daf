#!/usr/bin/env python3
"""Causes failures on purpose, and counts how often each promise of docs/reliability.md holds.

   make chaos                  one fifth of each count
   make chaos FULL=1           the full counts
   make chaos ONLY=R1,R4       only these promises; COUNT=3 sets the count of each; SEED=7 chooses other random moments

`make test` runs the same tests with small counts, except R25, which needs quiet cores. Each row runs a separate test. The
test gets the count in an environment variable, and reports the number of its trials. The number of trials can exceed the
count, because some tests try several backends or errors per count. The exit code is 1 if a promise failed at least once, or
could not be tried.
"""
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import alive
from programs import launch, tests_run

most_seconds = 3600  # time limit for one row
here = os.path.dirname(os.path.realpath(__file__))


@dataclass
class Row:
    promise: str
    what: str
    full: int  # the full count; 0: the test sets the count
    variable: str  # environment variable for the count
    test: str  # "file Class.test" for a Python test, otherwise the name of a case of tests_run
    ranks: int = 0  # number of ranks of the case; 0: one process, or a Python test


guard = "experiments/guard_test.py Guard"
saving = "parallel/state/checkpoint_test.py Interruptions"
random_programs = "random programs of collectives on every backend"
rows = [
    Row("R1", "a killed rank ends the run, and is named", 50, "KILLS",
        f"{guard}.test_ranks_killed_at_random_moments_are_named"),
    Row("R2", "a killed launcher leaves nothing", 20, "LAUNCHERS",
        f"{guard}.test_a_killed_launcher_leaves_no_process_and_no_file"),
    Row("R3", "a stopped rank is named", 10, "STOPS", f"{guard}.test_a_stopped_rank_is_named"),
    Row("R3", "an endless loop and a lost message are named", 20, "HANGS",
        f"{guard}.test_an_endless_loop_and_a_lost_message_are_named"),
    Row("R4", "one mistake in a sequence of calls is named, no alarm is false", 1000, "FAULTS",
        "one mistake of one rank in a random*", 4),
    Row("R4", "calls of two groups in opposite orders are named", 50, "CROSSED",
        f"{guard}.test_ranks_that_wait_for_each_other_are_named_within_two_seconds"),
    Row("R5", "random programs end, with the right sums", 10000, "SEQUENCES", random_programs, 4),
    Row("R6", "random reductions are right, with the same bits on all ranks", 20000, "CASES",
        "random reductions are right within the rounding*", 4),
    Row("R7", "a resumed run is the uninterrupted run", 44, "RESUMES",
        "experiments/resume_test.py Resumes.test_a_resumed_run_is_the_uninterrupted_run"),
    Row("R8", "every system call of a save may be the last", 0, "",
        f"{saving}.test_no_system_call_is_a_bad_moment_to_die"),
    Row("R9", "every flipped bit of a checkpoint is detected", 0, "", "every flipped bit of a checkpoint is detected"),
    Row("R9", "damage to a checkpoint is named, the older set loads", 10000, "MUTATIONS",
        "no random damage to a checkpoint*"),
    Row("R10", "a kill loses no row of a record", 50, "KILLS",
        "record/kill_test.py Kills.test_a_kill_loses_no_acknowledged_row"),
    Row("R11", "a refused write of a checkpoint is reported", 20, "POINTS",
        f"{saving}.test_a_disk_that_refuses_is_no_success"),
    Row("R11", "a refused write of a record is reported", 20, "POINTS",
        "record/kill_test.py Kills.test_a_disk_that_refuses_is_no_success"),
    Row("R11", "no program reports success on a full disk", 100, "DISKS",
        "experiments/full_disk_test.py FullDisk.test_a_full_disk_is_no_success_and_harms_no_old_file"),
    Row("R12", "a path that cannot be used is refused before MPI starts", 480, "PATHS",
        "experiments/bad_paths_test.py BadPaths"),
    Row("R13", "mutated configurations and command lines", 100000, "MUTATIONS", "mutated configurations*"),
    Row("R14", "mutated checkpoints, weights, tokens, records", 100000, "MUTATIONS", "mutated files*"),
    Row("R15", "NaN and Inf are named at birth and survived", 100, "INJECTIONS",
        "NaN and Inf at random places are named and survived"),
    Row("R16", "a flipped bit in one replica is found and named", 100, "FLIPS",
        "a flipped bit in one replica is found and its rank is named"),
    Row("R17", "random programs on 64 ranks", 25, "SEQUENCES", random_programs, 64),
    Row("R19", "too little memory is named", 100, "LIMITS",
        "experiments/full_memory_test.py FullMemory"),
    Row("R20", "communicators leave nothing behind", 10000, "COMMUNICATORS", "communicators that come and go*", 4),
    Row("R23", "a signal saves a checkpoint and ends the run well", 20, "SIGNALS",
        "experiments/preemption_test.py Preemption.test_a_signal_at_a_random_moment_saves_and_ends_well"),
    Row("R25", "a rank twice as slow is named within 20 steps", 10, "SLOW",
        "experiments/slow_rank_test.py SlowRank.test_a_rank_twice_as_slow_is_named"),
    Row("R25", "a rank a fifth slower is no alarm", 10, "SLOW",
        "experiments/slow_rank_test.py SlowRank.test_a_rank_a_fifth_slower_is_no_alarm"),
    Row("R26", "documented formats are read exactly, newer ones refused", 0, "",
        "parallel/state/golden_test.py Golden"),
    Row("R27", "a launch whose ranks are killed ends on the same bits", 50, "KILLS", "experiments/launch_test.py Kills"),
    Row("R27", "hangs, dead keepers, damaged snapshots, launchers that lie", 0, "", "experiments/launch_test.py Deaths"),
    Row("R27", "a launch that loses a host goes on without it", 0, "", "hosts/launch_hosts_test.py LostHosts"),
    Row("R28", "a launch that cannot go on gives up", 0, "", "experiments/launch_test.py GivesUp"),
]


def outcome(row, count):
    """Returns the numbers of trials and failed trials that the test printed, and the test's complete output. The numbers are
    None if the test was skipped, or ended before it printed them."""
    environment = {**os.environ, "TIMED": "yes", **({row.variable: str(count)} if row.variable else {})}
    if ".py " in row.test:
        file, name = row.test.split(" ")
        environment["PYTHONPATH"] = f"{here}:{here}/{os.path.dirname(file)}"
        command = ["/usr/bin/python3", "-m", "unittest", "-v", f"{os.path.relpath(here)}/{file}", "-k", name]
    else:
        command = [*(launch + ["-n", str(row.ranks)] if row.ranks else []), tests_run, row.test]
    with tempfile.TemporaryFile("w+", errors="replace") as output:  # not a pipe, which a surviving process would keep open
        process = alive.spawn(command, stdout=output, stderr=output, env=environment)
        try:
            code = process.wait(most_seconds)
        except subprocess.TimeoutExpired:
            code = f"none after {most_seconds} s"
        finally:
            alive.end(process.pid)
        output.seek(0)
        said = output.read()
    lines = re.findall(r"chaos: (\d+) tried, (\d+) failed", said)
    tried, failed = (sum(int(line[i]) for line in lines) for i in range(2))
    whole = code == 0 and " skipped " not in said and "skipped=" not in said and tried > 0
    return tried, failed if whole or failed > 0 else None, f"{said}\nexit code: {code}"


def chosen():
    only = [word for word in os.environ.get("ONLY", "").split(",") if word]
    unknown = set(only) - {row.promise for row in rows}
    if unknown:
        sys.exit(f"error: unknown promise {', '.join(sorted(unknown))}\n  ONLY={os.environ['ONLY']}\n  "
                 f"the promises: {', '.join(dict.fromkeys(row.promise for row in rows))}")
    return [row for row in rows if not only or row.promise in only]


def main():
    asked, share = int(os.environ.get("COUNT", "0") or 0), 1 if os.environ.get("FULL") else 5
    table, broken = [], False
    for row in chosen():
        count = (asked or max(1, row.full // share)) if row.full else 0
        print(f"{row.promise:<4} {row.what} …", flush=True)
        began = time.monotonic()
        tried, failed, output = outcome(row, count)
        seconds = time.monotonic() - began
        broken |= failed != 0
        if failed != 0:
            print(output[-6000:])
        table.append((row.promise, row.what, tried, "?" if failed is None else tried - failed, f"{seconds:.0f} s"))
    print(f"\n{'':<5}{'promise':<72}{'tried':>7}{'held':>7}{'time':>8}")
    for promise, what, tried, held, seconds in table:
        print(f"{promise:<5}{what:<72}{tried:>7}{held:>7}{seconds:>8}")
    sys.exit(broken)


if __name__ == "__main__":
    main()
