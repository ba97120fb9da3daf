"""Starts our programs for the tests in Python. `make test` says where they are; by hand they are looked for in build/."""
import json
import os
import shlex
import subprocess

build = os.environ.get("TEST_BUILD", "build")
launch = shlex.split(os.environ.get("TEST_LAUNCH", "mpirun --oversubscribe"))
chorale = f"{build}/chorale"
tests_run = f"{build}/tests_run"


def start(command, limit_seconds=60, folder=None, **environment):
    """Runs a command to its end; the result has returncode, stdout, stderr."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CHORALE_")}
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit_seconds, cwd=folder,
                          env={**kept, **environment})


def ranks(count, *command, **environment):
    return start([*launch, "-n", str(count), *command], **environment)


def backends():
    """Those that join processes and work here."""
    info = json.loads(start([chorale, "info", "--format", "json"]).stdout)
    return [backend["name"] for backend in info["backends"] if backend["available"] and backend["name"] in ("shm", "ucx", "mpi")]
