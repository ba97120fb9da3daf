"""Starts our programs for the Python tests. `make test` sets the folder of the programs. The default is build/."""
import json
import os
import shlex
import shutil
import subprocess
import unittest

import alive
from alive import finish, spawn, until  # noqa: F401: used by tests that watch a running program

build = os.environ.get("TEST_BUILD", "build")
# So that measurements made during tests do not enter the user's cache.
os.environ["XDG_CACHE_HOME"] = os.path.abspath(f"{build}/test-cache")
launch = shlex.split(os.environ.get("TEST_LAUNCH", "mpirun --oversubscribe"))
thorough = bool(os.environ.get("TEST_ALL"))  # `make test-all`
left_to_test_all = "only in `make test-all`: "
chorale = f"{build}/chorale"
tests_run = f"{build}/tests_run"
sanitizer = os.environ.get("TEST_SANITIZER", "")  # `make SANITIZE=thread test`
without_mpi = {"OMPI_MCA_pml": "none"}  # makes the start of Open MPI fail


def only_in_test_all(why):
    """For a case, or a class, that takes long and whose mistakes a shorter case finds too."""
    return unittest.skipUnless(thorough, left_to_test_all + why)


def sample(cases, one_of):
    """`make test` takes the first of a list of cases and each `one_of`-th after it, `make test-all` all."""
    return list(cases)[:: 1 if thorough else one_of]


def start(command, limit_seconds=alive.limit, folder=None, **environment):
    """Runs a command to its end. The result has returncode, stdout and stderr."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CHORALE_") and k != "COLUMNS"}
    process = spawn(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                    env={**kept, **environment})
    output, errors = finish(process, limit_seconds)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def rest_of(terminal):
    """Returns the output of a program on a pseudo-terminal until the program ends. `terminal` is this end of the
    pseudo-terminal, and is closed afterwards."""
    seen = b""
    try:
        while part := os.read(terminal, 4096):
            seen += part
    except OSError:  # the program's end is closed
        pass
    os.close(terminal)
    return seen


def works(*command):
    return bool(shutil.which(command[0])) and subprocess.run(command, capture_output=True).returncode == 0


def can_trace():
    """Whether strace is installed and may trace. The `?` before a call's name allows architectures that lack the call."""
    return works("strace", "-qq", "-f", "-o", "/dev/null", "-e", "trace=?rename", "true")


def mount_namespace():
    """Returns the words to put before a command so that it can mount file systems that only this command sees. Returns [] if
    mounts are not possible on this machine."""
    words = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]
    return words if works(*words, "mount", "-t", "tmpfs", "none", "/dev/shm") else []


def random_seed():
    """Returns and prints SEED, or by default a number that differs for each commit. So a few trials per run cover more cases
    over time."""
    seed = os.environ.get("SEED")
    if seed is None:
        said = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True) if shutil.which("git") else None
        seed = int(said.stdout[:7], 16) if said and said.returncode == 0 else 0
    print(f"SEED={seed}", flush=True)
    return int(seed)


def ranks(count, *command, **environment):
    return start([*launch, "-n", str(count), *command], **environment)


def backends():
    """Returns the backends that connect processes and are available on this machine."""
    info = json.loads(start([chorale, "info", "--format", "json"]).stdout)
    return [backend["name"] for backend in info["backends"] if backend["available"]
            and backend["name"] not in ("nccl", "threads")]  # nccl needs GPUs; threads has a single process
