"""Starts programs and waits until they end or stop making progress. The speed of the machine does not matter.

   process = spawn([program, …])          in a new session, so that all descendants of the process can be found and ended
   output, errors = finish(process)       ends the processes and raises Stuck if they make no progress
   until(lambda: file_is_there, process)  waits for an effect of the process

A process and its descendants count as stuck when all have slept for `limit` seconds, or when their total CPU time is five
times `limit`. Ranks that wait for each other poll, so even ranks that hang use CPU time. On a busy machine, a program needs
more wall time, but hardly more CPU time. After a wall time of twenty times `limit`, processes always count as stuck.
"""
import collections
import os
import signal
import subprocess
import time

limit = float(os.environ.get("TEST_LIMIT", "60"))
ticks = os.sysconf("SC_CLK_TCK")
journal = None  # an open file to which signs of life are written; outside.py sets it


class Stuck(Exception):
    pass


Process = collections.namedtuple("Process", "parent session state seconds")  # CPU time, with ended children


def processes():
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except OSError:  # the process has just ended
            continue
        found[int(pid)] = Process(int(fields[1]), int(fields[3]), fields[0], sum(map(int, fields[11:15])) / ticks)
    return found


def family(pid, among):
    """Returns pid and its descendants. If any of these processes leads a session, the result includes all processes of the
    session, even those whose parents have ended."""
    members = {pid}
    while more := {p for p, other in among.items() if other.parent in members or other.session in members} - members:
        members |= more
    return members & among.keys()


def end(pid, itself=True):
    """Ends a process and its family. If `itself` is false, the process itself is not ended."""
    for member in family(pid, processes()) - (set() if itself else {pid}):
        try:
            os.kill(member, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Patience:
    """Decides whether a process and its descendants have stopped making progress. is_over() must be polled."""

    def __init__(self, pid, limit_seconds):
        self.pid, self.limit = pid, limit_seconds
        self.asked = self.said = time.monotonic()
        self.waited = self.idle = self.computed = 0.0

    def is_over(self):
        now = time.monotonic()
        if now - self.asked < 0.5:
            return False
        since, self.asked = min(now - self.asked, 1.0), now  # a longer gap means that this process could not run
        among = processes()
        members = [among[member] for member in family(self.pid, among)]
        computed = max(sum(member.seconds for member in members), self.computed)
        works = computed - self.computed > 0.02 * since or any(member.state in "RD" for member in members)
        self.idle = 0 if works else self.idle + since
        self.waited, self.computed = self.waited + since, computed
        if journal and self.idle == 0 and now - self.said > 5:
            self.said = now
            journal.write("alive\n")
        return self.idle > self.limit or self.computed > 5 * self.limit or self.waited > 20 * self.limit

    def __str__(self):
        return f"after {self.waited:.0f} s, of which {self.idle:.0f} s asleep, and {self.computed:.0f} s of processor time"


def spawn(command, **options):
    return subprocess.Popen(command, text=True, errors="replace", start_new_session=True, **options)


def finish(process, limit_seconds=limit):
    """Waits until the process ends, and returns its output."""
    patience = Patience(process.pid, limit_seconds)
    while True:
        try:
            return process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            if patience.is_over():
                end(process.pid)
                output, errors = process.communicate()
                raise Stuck(f"{process.args} has not ended {patience}\n{output or ''}{errors or ''}") from None


def until(condition, process, limit_seconds=limit):
    """Waits until condition() returns a true value, and returns this value. The process must not end before the condition is
    true."""
    patience = Patience(process.pid, limit_seconds)
    while True:
        over = process.poll() is not None
        if value := condition():
            return value
        if over:
            raise Stuck(f"{process.args} ended with exit code {process.returncode} before the awaited condition held")
        if patience.is_over():
            raise Stuck(f"{process.args} has not met the awaited condition {patience}")
        time.sleep(0.05)
