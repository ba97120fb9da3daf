#!/usr/bin/env python3
"""Runs every test and ends with the line `N passed, N failed`.

   tests/run.py BUILD LAUNCH [SANITIZER]      what `make test` calls

One process for the tests that need no launcher, then mpirun on 1, 2, 3, 4 and 8 ranks for those tagged [spmd], then the tests
in Python, which look at the program from outside. A launch that crashes, hangs or says nothing counts as a failed test.
"""
import os
import re
import shlex
import subprocess
import sys
import time

build, launch, sanitizer = sys.argv[1], shlex.split(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""
closing = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)
passed = failed = 0

# What the sanitizers need to live with MPI and UCX: their hooks into malloc and mmap go; MPI's leaks, from libraries that are unloaded before
# anyone could name them, are not looked for, so that only the launch without MPI looks for ours.
environment = dict(os.environ, TEST_BUILD=build, TEST_LAUNCH=shlex.join(launch), ASAN_OPTIONS="detect_leaks=0")
if sanitizer:
    environment |= {"OMPI_MCA_memory": "^patcher", "UCX_MEM_MMAP_HOOK_MODE": "none", "TEST_LIMIT": "240"}


def run(name, command, limit_seconds, **more):
    """Runs one launch, shows its output when it fails, and adds up what it says it passed and failed."""
    global passed, failed
    started = time.time()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env={**environment, **more}, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=limit_seconds)
        trouble = "" if process.returncode == 0 else f"exit code {process.returncode}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, trouble = process.communicate()[0], f"not finished after {limit_seconds} s"
    counts = closing.findall(output)
    good, bad = (int(n) for n in counts[-1]) if counts else (0, 0)
    if trouble and bad == 0:
        bad = 1
    if not trouble and good + bad == 0:
        bad, trouble = 1, "no test ran"
    passed, failed = passed + good, failed + bad
    print(f"{name:<28} {good:>4} passed {bad:>3} failed  {time.time() - started:6.1f} s  {trouble}", flush=True)
    if bad:
        print(output, flush=True)


run("one process and threads", [f"{build}/tests_run", "~[spmd]~[.]"], 900, ASAN_OPTIONS="detect_leaks=1")
if sanitizer == "thread":
    print("mpirun: left out, because the thread sanitizer does not see the MPI library's own synchronisation")
else:
    for ranks in (1, 2, 3, 4, 8):
        run(f"mpirun, {ranks} ranks", [*launch, "-n", str(ranks), f"{build}/tests_run", "[spmd]"], 600)
    run("from outside, in Python", [sys.executable, "tests/outside.py"], 900)
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
