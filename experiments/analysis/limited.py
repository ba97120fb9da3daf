#!/usr/bin/python3
"""Runs ranks in memory control groups (cgroups, version 1 or 2), and reads the kernel's counters of each rank.

   with Groups([700e6, 700e6]) as groups:                        one group per rank; None: the rank has no limit
       seen = ranks(["build/chorale", "train", …], groups)       seen.counts[0].read_bytes …

              mpirun ── limited.py --rank FOLDER 0= 1=…            joins the rank's group, and starts the program
                           └── build/chorale train …              ends, and remains a zombie until its counters are read

Each rank is the child of a process of this script. The kernel's counters of a process can still be read after the process
has ended, but only until its parent waits for it. /proc/PID/io counts the bytes that reached the disk, for all threads,
including those of io_uring.
"""
import collections
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

# peak_rss counts a page of shared memory in full on every rank that uses it. In peak_share, a page that n processes use
# counts as 1/n of a page for each of them; peak_share is sampled ten times a second.
Counts = collections.namedtuple("Counts", "status read_bytes write_bytes peak_rss peak_share")
Seen = collections.namedtuple("Seen", "returncode stderr counts group_peaks")  # counts: indexed by rank
launch = shlex.split(os.environ.get("MPIRUN", "mpirun --oversubscribe"))
as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # groups need root


class NoGroups(Exception):
    """Raised if memory control groups cannot be made here; the message says why."""


def hierarchy():
    """Returns the folder in which this process can make groups, and the files of the limit, the peak and the swap limit."""
    if os.geteuid() != 0:
        raise NoGroups("it needs root")
    for line in read("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()[:3]
        top, mount = before.split()[3:5]
        if kind == "cgroup" and "memory" in options.split(","):
            entries = (entry.split(":", 2) for entry in read("/proc/self/cgroup").splitlines())
            own = next(words[2] for words in entries if "memory" in words[1].split(","))
            below = os.path.relpath(own, top)
            folder = mount if below.startswith("..") else os.path.normpath(f"{mount}/{below}")
            return folder, ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.memsw.limit_in_bytes")
        if kind == "cgroup2":  # only the root group is allowed to have both processes and groups below it
            if "memory" in read(f"{mount}/cgroup.subtree_control").split():
                return mount, ("memory.max", "memory.peak", "memory.swap.max")
    raise NoGroups("no hierarchy of control groups has the memory controller")


class Groups:
    """One group per rank, each with a limit in bytes. Raises NoGroups, with the reason, if a limit cannot be set."""

    def __init__(self, limits):
        self.limits, self.paths = limits, [None] * len(limits)

    def __enter__(self):
        if not any(self.limits):
            return self
        top, (limit, self.peak, swap) = hierarchy()
        try:
            for rank, most in enumerate(self.limits):
                path = f"{top}/chorale-{os.getpid()}-{rank}"
                os.mkdir(path)
                self.paths[rank] = path
                write(f"{path}/{limit}", int(most))
                if os.path.exists(f"{path}/{swap}"):
                    write(f"{path}/{swap}", int(most) if "memsw" in swap else 0)
        except OSError as error:
            self.__exit__()
            raise NoGroups(f"{error.filename or path}: {error.strerror}") from error
        return self

    def peaks(self):
        return [int(read(f"{path}/{self.peak}")) if path and os.path.exists(f"{path}/{self.peak}") else None
                for path in self.paths]

    def __exit__(self, *_):
        for path in filter(None, self.paths):
            while os.path.isdir(path):
                try:
                    os.rmdir(path)
                except OSError:  # the last process of the group is still ending
                    time.sleep(0.01)


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


def ranks(command, groups, folder=None, **environment):
    """Runs the command on as many ranks as there are groups, and waits until it ends."""
    count = len(groups.paths)
    with tempfile.TemporaryDirectory() as reports:
        names = [f"{rank}={path or ''}" for rank, path in enumerate(groups.paths)]
        words = [sys.executable, os.path.abspath(__file__), "--rank", reports, *names, "--", *command]
        done = subprocess.run(words if count == 1 else [*launch, "-n", str(count), *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder, check=False,
                              env={**os.environ, **as_root, **environment})
        counts = [Counts(*json.loads(read(f"{reports}/{rank}"))) for rank in range(count)
                  if os.path.exists(f"{reports}/{rank}")]
    return Seen(done.returncode, done.stderr, counts, groups.peaks())


def memory_share(pid):
    try:
        all_pages, kinds = (dict(re.findall(r"(\w+):\s+(\d+) kB", read(f"/proc/{pid}/{file}")))
                             for file in ("smaps_rollup", "status"))
    except OSError:  # the process has just ended
        return 0
    parts = all_pages.get("Anonymous"), all_pages.get("Pss_Shmem"), kinds.get("RssFile")
    return 1024 * sum(map(int, parts)) if all(parts) else 0


def as_rank(reports, groups, command):
    """Starts the program in this rank's group, and reports the kernel's counters. Returns the program's exit status."""
    rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0"))
    group = groups[rank]
    join = (lambda: write(f"{group}/cgroup.procs", 0)) if group else None
    child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], preexec_fn=join)
    share = 0
    while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        share = max(share, memory_share(child.pid))
        time.sleep(0.1)
    io = dict(line.split(": ") for line in read(f"/proc/{child.pid}/io").splitlines())
    _, status, usage = os.wait4(child.pid, 0)
    status = os.waitstatus_to_exitcode(status)
    write(f"{reports}/{rank}", json.dumps([status, int(io["read_bytes"]),
                                           int(io["write_bytes"]) - int(io["cancelled_write_bytes"]),
                                           usage.ru_maxrss * 1024, share]))
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    if sys.argv[1:2] != ["--rank"]:
        sys.exit(__doc__)
    end = sys.argv.index("--")
    sys.exit(as_rank(sys.argv[2], dict(word.split("=", 1) for word in sys.argv[3:end]), sys.argv[end + 1:]))
