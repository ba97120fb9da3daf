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
# Measurements that are made during tests must not enter the user's cache.
os.environ["XDG_CACHE_HOME"] = os.path.abspath(f"{build}/test-cache")
launch = shlex.split(os.environ.get("TEST_LAUNCH", "mpirun --oversubscribe"))
thorough = bool(os.environ.get("TEST_ALL"))  # `make test-all`
left_to_test_all = "only in `make test-all`: "
chorale = f"{build}/chorale"
tests_run = f"{build}/tests_run"
sanitizer = os.environ.get("TEST_SANITIZER", "")  # `make SANITIZE=thread test`
without_mpi = {"OMPI_MCA_pml": "none"}  # with this variable, Open MPI fails to start


def only_in_test_all(why):
    """Marks a case or a class that only `make test-all` runs, because it takes long and a shorter case finds the same
    mistakes."""
    return unittest.skipUnless(thorough, left_to_test_all + why)


def sample(cases, one_of):
    """Returns the cases to run from a list. `make test-all` runs all cases. `make test` runs the first case and every
    `one_of`-th case after it."""
    return list(cases)[:: 1 if thorough else one_of]


def start(command, limit_seconds=alive.limit, folder=None, **environment):
    """Runs a command to its end. The result has returncode, stdout and stderr."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CHORALE_") and k != "COLUMNS"}
    process = spawn(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                    env={**kept, **environment})
    output, errors = finish(process, limit_seconds)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def rest_of(terminal):
    """Reads from a pseudo-terminal until the program on it ends, and returns the program's output. `terminal` is our end of
    the pseudo-terminal, and is closed when the program has ended."""
    seen = b""
    try:
        while part := os.read(terminal, 4096):
            seen += part
    except OSError:  # the program has closed its end
        pass
    os.close(terminal)
    return seen


def works(*command):
    return bool(shutil.which(command[0])) and subprocess.run(command, capture_output=True).returncode == 0


def can_trace():
    """Whether strace is installed and is permitted to trace. The `?` before the name of the system call permits that this
    architecture does not have the call."""
    return works("strace", "-qq", "-f", "-o", "/dev/null", "-e", "trace=?rename", "true")


def mount_namespace():
    """Returns a command prefix. A command with this prefix can mount file systems that are visible only to itself. Returns
    [] if this machine does not permit mounts."""
    words = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]
    return words if works(*words, "mount", "-t", "tmpfs", "none", "/dev/shm") else []


def random_seed():
    """Prints and returns the random seed, which is SEED or, by default, a number that differs between commits. So over many
    commits, a few trials per run cover many cases."""
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
            and backend["name"] not in ("nccl", "threads")]  # nccl needs GPUs; with threads, all ranks are in one process


def require_emulated_hosts():
    """Skips the test class if experiments/tools/hosts cannot emulate hosts on this machine."""
    tried = start(["experiments/tools/hosts", "with", "2", "1gbit", "true"])
    if tried.returncode:
        raise unittest.SkipTest(f"no hosts can be emulated here: {tried.stderr.strip()}")
