"""Starts our programs for the Python tests. `make test` sets their folder; otherwise it is build/."""
import json
import os
import shlex
import shutil
import subprocess

import alive
from alive import finish, spawn, until  # noqa: F401: for tests that watch a running program

build = os.environ.get("TEST_BUILD", "build")
# Keeps measurements made during tests out of the user's cache.
os.environ["XDG_CACHE_HOME"] = os.path.abspath(f"{build}/test-cache")
launch = shlex.split(os.environ.get("TEST_LAUNCH", "mpirun --oversubscribe"))
thorough = bool(os.environ.get("TEST_ALL"))  # `make test-all`
chorale = f"{build}/chorale"
tests_run = f"{build}/tests_run"
sanitizer = os.environ.get("TEST_SANITIZER", "")  # `make SANITIZE=thread test`
without_mpi = {"OMPI_MCA_pml": "none"}  # with this environment, Open MPI cannot start


def start(command, limit_seconds=alive.limit, folder=None, **environment):
    """Runs a command to its end; the result has returncode, stdout, stderr."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CHORALE_") and k != "COLUMNS"}
    process = spawn(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
                    env={**kept, **environment})
    output, errors = finish(process, limit_seconds)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def rest_of(terminal):
    """Returns what a program writes to this end of a pseudo-terminal until it ends. Closes the terminal."""
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
    """Whether strace is installed and may trace. With `?` before its name, a call that the architecture lacks is not an
    error."""
    return works("strace", "-qq", "-f", "-o", "/dev/null", "-e", "trace=?rename", "true")


def mount_namespace():
    """Returns the words to put before a command so that it can mount file systems that only it sees; [] if nothing can be
    mounted here."""
    words = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]
    return words if works(*words, "mount", "-t", "tmpfs", "none", "/dev/shm") else []


def random_seed():
    """Returns and prints SEED, or a number that differs for each commit, so that a few trials per run cover more cases over
    time."""
    seed = os.environ.get("SEED")
    if seed is None:
        said = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True) if shutil.which("git") else None
        seed = int(said.stdout[:7], 16) if said and said.returncode == 0 else 0
    print(f"SEED={seed}", flush=True)
    return int(seed)


def ranks(count, *command, **environment):
    return start([*launch, "-n", str(count), *command], **environment)


def backends():
    """The backends that connect processes and are available here."""
    info = json.loads(start([chorale, "info", "--format", "json"]).stdout)
    return [backend["name"] for backend in info["backends"] if backend["available"]
            and backend["name"] not in ("nccl", "threads")]  # nccl needs GPUs; ranks of threads are one process
