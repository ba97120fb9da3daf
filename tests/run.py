#!/usr/bin/env python3
"""Runs every test and ends with the line `N passed, N failed, N skipped`.

   tests/run.py BUILD LAUNCH [SANITIZER]      called by `make test`, with TEST_QUICK set by `make check`, with TEST_ALL
                                              set by `make test-all`

Cases come in groups: those without a launcher, those for ranks under mpirun, and those in Python, which start the
programs from outside. A test program gets its cases in TEST_CASES and reports progress in TEST_JOURNAL. When a case crashes
or hangs, it has failed, its program is ended, and another process runs the remaining cases.

`make test-all` adds C++ cases with each sanitizer, more numbers of ranks and hosts, the cases that say
`only_in_test_all("why")`, and all of the lists of which `make test` takes a sample (tests/sample.hpp, `sample` in
tests/programs.py).

`make check` leaves out the cases whose last run took more than a second of processor time: a sixth of the cases, but nine
tenths of the time. In a new clone it runs all cases.

Enough programs run at the same time to keep all processors busy. A program under mpirun counts once per rank. Programs with
the most ranks start first. Each group's line ends with its processor seconds, which change less on a busy machine than wall
seconds. For ranks, these are the seconds of rank 0 times the number of ranks. The times of all cases are in
BUILD/test_times.csv.
"""
import csv
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from fractions import Fraction

import alive

processors = min(len(os.sched_getaffinity(0)), 16)


@dataclass
class Group:
    name: str
    program: list
    environment: dict
    launcher: list = field(default_factory=list)
    ranks: int = 1
    load: Fraction = Fraction(1)  # the fraction of a processor that one rank keeps busy
    portions: int = 1  # number of processes that share the cases; 0: the program sets it
    results: dict = field(default_factory=dict)  # case: (outcome, seconds, processor seconds)
    began: float = 0.0

    def divided(self):
        """Splits the cases into portions. Neighboring cases are put into different portions, because they take similar
        times."""
        how = "--names" if self.portions else "--portions"
        cases = subprocess.run([*self.program, how], env=self.environment, capture_output=True,
                               text=True).stdout.splitlines()
        if not self.portions:
            return [portion.split() for portion in cases]
        return [cases[first::self.portions] for first in range(min(self.portions, len(cases)))]

    def count(self, outcome):
        return sum(result == outcome for result, *_ in self.results.values())

    def __str__(self):
        skipped, took = self.count("skipped"), time.monotonic() - self.began
        computed = self.ranks * sum(computed for *_, computed in self.results.values())
        return (f"{self.name:<28} {self.count('passed'):>4} passed {self.count('failed'):>3} failed  {took:6.1f} s"
                f"  {computed:6.1f} s computed"
                + (f"  {skipped} skipped" if skipped else ""))


def read(journal):
    """Returns the ended cases with their outcomes and seconds, and the case that has begun but not ended."""
    ended, open_case = {}, None
    if not os.path.exists(journal):
        return ended, open_case
    with open(journal) as file:
        lines = file.read().splitlines()
    for line in lines:
        if line.startswith("begin "):
            open_case = line[len("begin "):]
        elif closing := re.match(r"end (\w+) ([\d.]+) ([\d.]+) (.*)", line):
            ended[closing[4]], open_case = (closing[1], float(closing[2]), float(closing[3])), None
    return ended, open_case


def attempt(group, cases):
    """Runs one program with these cases. Returns the ended cases, the case that was running when the program ended, the kind
    of trouble, and the output."""
    with tempfile.TemporaryDirectory() as folder:
        names, journal, output = (os.path.join(folder, name) for name in ("cases", "journal", "output"))
        with open(names, "w") as file:
            file.write("\n".join(cases) + "\n")
        with open(output, "w") as file:  # not a pipe: surviving processes would keep it open
            process = alive.spawn([*group.launcher, *group.program], stdin=subprocess.DEVNULL, stdout=file,
                                  stderr=subprocess.STDOUT,
                                  env={**group.environment, "TEST_CASES": names, "TEST_JOURNAL": journal})
        try:
            silence = 10 * float(group.environment.get("TEST_LIMIT", "60"))  # the program itself detects most hangs earlier
            size, quiet, asked, trouble = 0, 0.0, time.monotonic(), ""
            while process.poll() is None and not trouble:
                time.sleep(0.05)
                now = time.monotonic()
                was, size = size, os.path.getsize(journal) if os.path.exists(journal) else 0
                if size != was:
                    group.results |= read(journal)[0]
                quiet, asked = (quiet + min(now - asked, 1.0) if size == was else 0.0), now
                if quiet > silence:
                    trouble = f"no sign of life for {quiet:.0f} s"
        finally:
            alive.end(process.pid)  # even if the program has ended, because it may have left processes behind
            process.wait()
        ended, open_case = read(journal)
        if not trouble and process.returncode:
            trouble = f"exit code {process.returncode}"
        with open(output, errors="replace") as file:
            return ended, open_case, trouble, file.read()


class Runner:
    def __init__(self, slow=frozenset()):
        self.change, self.free, self.jobs, self.groups = threading.Condition(), processors, [], []
        self.slow, self.left = slow, 0  # the (group, case) pairs to leave out, and how many were left out

    def add(self, group):
        self.groups.append(group)
        portions = group.divided()
        if not portions:
            group.results["(the list of its cases)"] = "failed", 0.0, 0.0
        for cases in portions:
            quick = [case for case in cases if (group.name, case) not in self.slow]
            self.left += len(cases) - len(quick)
            if quick:
                self.jobs.append((group, quick))

    def run(self):
        self.jobs.sort(key=lambda job: -job[0].ranks)
        total = sum(len(cases) for _, cases in self.jobs)
        with self.change:
            for group, cases in list(self.jobs):
                size = min(group.ranks, processors) * group.load
                self.wait(lambda: self.free >= size, total)
                self.free -= size
                group.began = group.began or time.monotonic()
                threading.Thread(target=self.job, args=(group, cases, size), daemon=True).start()
            self.wait(lambda: not self.jobs, total)

    def wait(self, condition, total):
        while not self.change.wait_for(condition, timeout=60):
            print(f"… {sum(len(group.results) for group in self.groups)} of {total} cases", flush=True)

    def job(self, group, cases, size):
        left = list(cases)
        while left:
            ended, open_case, trouble, output = attempt(group, left)
            left = [case for case in left if case not in ended]
            if left:  # the program ended before it had run all cases
                broken = open_case if open_case in left else left[0]
                left.remove(broken)
                ended[broken] = "failed", 0.0, 0.0
                trouble = f"{broken}: {trouble or 'has not run'}"
            elif trouble and not any(outcome == "failed" for outcome, *_ in ended.values()):
                ended[f"(the end of {cases[0]} …)"] = "failed", 0.0, 0.0
            with self.change:
                group.results |= ended
                if any(outcome == "failed" for outcome, *_ in ended.values()):
                    print(f"{group.name}: {trouble}\n{output}", flush=True)
        with self.change:
            self.jobs.remove((group, cases))
            if not any(other is group for other, _ in self.jobs):
                print(group, flush=True)
            self.free += size
            self.change.notify_all()


def groups_on_hosts(tests, environment, launch):
    """Yields groups that run the cases tagged [hosts] with ranks on several emulated hosts, if the machine can emulate
    hosts."""
    tried = subprocess.run(["experiments/tools/hosts", "with", "1", "none", "mpirun", "--version"], capture_output=True,
                           text=True)
    if tried.returncode or "Open MPI" not in tried.stdout:
        print("several hosts: left out; " + (tried.stderr.strip() or "they need Open MPI's mpirun"), flush=True)
        return
    more = [(4, 2), (4, 1), (2, 1)] if thorough() else []
    for hosts, each in [*more, (2, 2)]:  # two ranks on each of two hosts: near and far peers
        where = ",".join(f"n{host}:{each}" for host in range(hosts))
        launcher = ["experiments/tools/hosts", "with", str(hosts), "none", *launch, "--host", where, "-n", str(hosts * each)]
        name = f"{hosts} hosts, {each} rank{'s' * (each > 1)} each"
        yield Group(name, [tests, "[hosts]"], environment, launcher, hosts * each)


def thorough():
    return bool(os.environ.get("TEST_ALL"))


def last_times(file):
    """Returns the last seconds and processor seconds of each (group, case) pair. The list is empty in a new build folder."""
    if not os.path.exists(file):
        return {}
    with open(file, newline="") as lines:
        return {(row["group"], row["case"]): (float(row["seconds"]), float(row["processor_seconds"]))
                for row in csv.DictReader(lines)}


def all_groups(build, launch, sanitizer):
    yield from groups(build, launch, sanitizer)
    if thorough() and not sanitizer:
        for each in ("thread", "address,undefined"):  # `do-test-all` in the Makefile builds their tests_run
            between = "/" if build == "build" else "-"  # as B in the Makefile
            yield from sanitized_groups(f"{build}{between}{each.replace(',', '-')}", launch, each)


def environment_of(build, launch, sanitizer):
    # The sanitizers cannot work with MPI's and UCX's hooks into malloc and mmap, so these hooks are off. MPI unloads
    # libraries that leak memory before the leak report could name these libraries. So leaks are checked only in the group
    # without MPI. Several programs share the cores, so MPI yields instead of spinning.
    environment = dict(os.environ, TEST_BUILD=build, TEST_LAUNCH=shlex.join(launch), TEST_SANITIZER=sanitizer,
                       ASAN_OPTIONS="detect_leaks=0", OMPI_MCA_mpi_yield_when_idle="1")
    if sanitizer:
        environment |= {"OMPI_MCA_memory": "^patcher", "UCX_MEM_MMAP_HOOK_MODE": "none",
                        "TEST_LIMIT": "900" if sanitizer == "thread" else "240",  # 64 threads are silent for minutes
                        "TSAN_OPTIONS": f"history_size=4 suppressions={os.path.abspath('tests/thread_sanitizer.supp')}"}
    return environment


def without_launcher(tests, environment, name="one process and threads", cases="~[spmd]~[.]"):
    return Group(name, [tests, cases], {**environment, "ASAN_OPTIONS": "detect_leaks=1"}, portions=24)


def sanitized_groups(build, launch, sanitizer):
    """The C++ cases that `make test-all` runs with a sanitizer too, with as many repetitions as `make test`. The thread
    sanitizer runs only cases in which ranks are threads, because it cannot see how the MPI library synchronizes."""
    environment = environment_of(build, launch, sanitizer)
    environment.pop("TEST_ALL")
    tests = f"{build}/tests_run"
    if sanitizer == "thread":
        yield without_launcher(tests, environment, f"{sanitizer}: threads", "[threads]~[.],[mapped]")
    else:
        yield Group(f"{sanitizer}: 3 ranks", [tests, "[spmd]"], environment, [*launch, "-n", "3"], 3)
        yield without_launcher(tests, environment, f"{sanitizer}: one process")


def groups(build, launch, sanitizer):
    environment = environment_of(build, launch, sanitizer)
    tests = f"{build}/tests_run"
    emulation = {**environment, "CHORALE_CUDA_PLUGIN": os.path.abspath(f"{build}/emulated/chorale_cuda.so")}
    direct = {**emulation, "CHORALE_CUDA_AWARE": "mpi,ucx", "EMULATED_OPEN": "1"}
    if sanitizer == "thread":
        print("mpirun: left out, because the thread sanitizer does not see the MPI library's own synchronization")
    for ranks in () if sanitizer == "thread" else (8, 4, 3, 2, 1):
        launcher = [*launch, "-n", str(ranks)]
        cases = "[spmd]" if ranks < 8 or thorough() else "[many]"
        yield Group(f"mpirun, {ranks} ranks", [tests, cases], environment, launcher, ranks)
        if ranks in (3, 2) or thorough():  # the memory of devices matters here, hardly the number of ranks
            yield Group(f"mpirun, {ranks} emulated devices", [tests, "[spmd][nccl],[spmd][device]"], emulation, launcher,
                        ranks)
        if ranks == 3 or thorough():
            yield Group(f"mpirun, {ranks} ranks, direct", [tests, "[spmd][device]"], direct, launcher, ranks)
    if not sanitizer:
        yield from groups_on_hosts(tests, environment, launch)
    yield Group("a device, emulated", [tests, "[gpu]~[!benchmark]"], emulation, portions=4)
    yield without_launcher(tests, environment)
    if sanitizer != "thread":
        yield Group("from outside, in Python", [sys.executable, "tests/outside.py"], environment, load=Fraction(1, 2),
                    portions=0)  # these programs often wait, for example while MPI starts


if __name__ == "__main__":
    began, times = time.monotonic(), f"{sys.argv[1]}/test_times.csv"
    before = last_times(times)
    runner = Runner({name for name, (_, computed) in before.items() if computed > 1 and os.environ.get("TEST_QUICK")})
    for group in all_groups(sys.argv[1], shlex.split(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""):
        runner.add(group)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    interrupted = False
    try:
        runner.run()
    except KeyboardInterrupt:
        interrupted = True
        alive.end(os.getpid(), itself=False)
    rows = [(seconds, computed * group.ranks * (outcome != "failed"), group.name, case) for group in runner.groups
            for case, (outcome, seconds, computed) in group.results.items()]  # 0 if it failed: a check runs it again
    slowest = sorted(rows, reverse=True)
    for _, _, *name in rows:
        before.pop(tuple(name), None)
    with open(times, "w", newline="") as file:
        csv.writer(file).writerows([("seconds", "processor_seconds", "group", "case"), *slowest,
                                    *((*took, *name) for name, took in before.items())])
    print(f"the slowest cases; all are in {times}")
    print("\n".join(f"{seconds:8.1f} s  {case}  ({name})" for seconds, _, name, case in slowest[:10]))
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    print(f"all tests took {minutes} min {seconds} s on {processors} processor{'s' * (processors > 1)}")
    passed, failed = (sum(group.count(outcome) for group in runner.groups) for outcome in ("passed", "failed"))
    skipped, left = (sum(group.count(outcome) for group in runner.groups) for outcome in ("skipped", "left"))
    if runner.left:
        print(f"{runner.left} cases that took more than a second of processor time are left to `make test`")
    if left:
        print(f"{left} cases are left to `make test-all`: git grep only_in_test_all tests")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(130 if interrupted else 1 if failed else 0)
