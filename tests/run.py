#!/usr/bin/env python3
"""Runs every test and ends with the line `N passed, N failed`.

   tests/run.py BUILD LAUNCH [SANITIZER]      what `make test` calls

One process for the tests that need no launcher, then mpirun on 1, 2, 3, 4 and 8 ranks for those tagged [spmd], then the tests
in Python, which look at the program from outside. A launch that crashes, hangs or says nothing counts as a failed test.
"""
import os
import re
import shlex
import signal
import subprocess
import sys
import time

closing = re.compile(r"^(\d+) passed, (\d+) failed$")


def count(output, exit_code, limit_seconds):
    """What a launch says it passed and failed, and what went wrong with it; trouble of any kind is at least one failure."""
    last = next((m for line in reversed(output.splitlines()) if (m := closing.match(line.strip()))), None)
    good, bad = (int(n) for n in last.groups()) if last else (0, 0)
    if exit_code is None:
        return good, max(bad, 1), f"not finished after {limit_seconds} s"
    if exit_code != 0:
        return good, max(bad, 1), f"exit code {exit_code}"
    if good + bad == 0:
        return 0, 1, "no test ran"
    return good, bad, ""


def run(name, command, limit_seconds, environment):
    """Runs one launch, shows its output when it fails, and returns what it passed and failed."""
    started = time.time()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env=environment, start_new_session=True)
    try:
        output, exit_code = process.communicate(timeout=limit_seconds)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, exit_code = process.communicate()[0], None
    good, bad, trouble = count(output, exit_code, limit_seconds)
    print(f"{name:<28} {good:>4} passed {bad:>3} failed  {time.time() - started:6.1f} s  {trouble}", flush=True)
    if bad:
        print(output, flush=True)
    return good, bad


def launches(build, launch, sanitizer):
    # What the sanitizers need to live with MPI and UCX: their hooks into malloc and mmap go; MPI's leaks, from libraries that are
    # unloaded before anyone could name them, are not looked for, so that only the launch without MPI looks for ours.
    environment = dict(os.environ, TEST_BUILD=build, TEST_LAUNCH=shlex.join(launch), ASAN_OPTIONS="detect_leaks=0")
    if sanitizer:
        environment |= {"OMPI_MCA_memory": "^patcher", "UCX_MEM_MMAP_HOOK_MODE": "none", "TEST_LIMIT": "240"}
    tests = f"{build}/tests_run"
    yield run("one process and threads", [tests, "~[spmd]~[.]"], 900, {**environment, "ASAN_OPTIONS": "detect_leaks=1"})
    emulation = {"CHORALE_CUDA_PLUGIN": os.path.abspath(f"{build}/emulated/chorale_cuda.so")}
    yield run("a device, emulated", [tests, "[gpu]~[!benchmark]"], 900, {**environment, **emulation})
    if sanitizer == "thread":
        print("mpirun: left out, because the thread sanitizer does not see the MPI library's own synchronisation")
        return
    for ranks in (1, 2, 3, 4, 8):
        yield run(f"mpirun, {ranks} ranks", [*launch, "-n", str(ranks), tests, "[spmd]"], 600, environment)
        yield run(f"mpirun, {ranks} emulated devices", [*launch, "-n", str(ranks), tests, "[spmd][nccl],[spmd][device]"], 600,
                  {**environment, **emulation})
        yield run(f"mpirun, {ranks} ranks, direct", [*launch, "-n", str(ranks), tests, "[spmd][device]"], 600,
                  {**environment, **emulation, "CHORALE_CUDA_AWARE": "mpi,ucx", "EMULATED_OPEN": "1"})
    yield run("from outside, in Python", [sys.executable, "tests/outside.py"], 1500, environment)


if __name__ == "__main__":
    results = list(launches(sys.argv[1], shlex.split(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""))
    passed, failed = (sum(column) for column in zip(*results))
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
