"""Tests `chorale launch` on several hosts, which experiments/tools/hosts emulates: a host is lost, the run goes on without
it from the snapshots in the memory of the others, and takes it back."""
import os
import re
import signal
import subprocess
import sys
import unittest

sys.path.append("tests/experiments")

import launch_test  # noqa: E402: found through sys.path
from launch_test import steps, trial  # noqa: E402
from programs import chorale, require_emulated_hosts, start, until  # noqa: E402

hosts = "experiments/tools/hosts"
model = ["2" if before == "--micro-batch-size" else word
         for before, word in zip(["", *launch_test.model], launch_test.model)]


@unittest.skipUnless("Open MPI" in start(["mpirun", "--version"]).stdout, "the emulated hosts need Open MPI's mpirun")
class LostHosts(launch_test.LaunchCase):
    @classmethod
    def setUpClass(cls):
        require_emulated_hosts()
        super().setUpClass()

    def launch_on(self, names, *options, layout="dp4.z1", interval=1000, **environment):
        self.hosts_of_ranks = [word.split(":")[0] for word in names.split(",") for _ in range(int(word.split(":")[1]))]
        count = str(len(set(self.hosts_of_ranks)))
        return self.launch("--hosts", names, *options, layout=layout, slots=None, interval=interval, program=model,
                           before=[hosts, "with", count, "none"], **environment)

    def ranks(self):
        """Returns {rank: pid} of the current start."""
        found = {}
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as words, open(f"/proc/{entry}/environ", "rb") as variables:
                    rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", variables.read())
                    if rank and f"--run-dir={self.run_folder()}\0".encode() in words.read():
                        found[int(rank.group(1))] = int(entry)
            except OSError:
                continue
        return found

    def processes_beside(self, pid, first=False):
        """Returns the processes on the host of a process, except the host's first process and its `sleep`; or only its first
        process."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/status") as status:
                    text = status.read()
                if os.stat(f"/proc/{entry}/ns/pid").st_ino != os.stat(f"/proc/{pid}/ns/pid").st_ino:
                    continue
            except OSError:
                continue
            is_first = re.search(r"(?m)^NSpid:.*\t1$", text) is not None
            if is_first if first else not is_first and not text.startswith("Name:\tsleep\n"):
                found.append(int(entry))
        return found

    def lose(self, rank):
        for pid in self.processes_beside(self.ranks()[rank]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def set_link(self, pid, state):
        done = subprocess.run(["nsenter", "--target", str(pid), "--net", "ip", "link", "set", "eth0", state],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def resize(self, number):
        return start([chorale, "resize", str(number), self.run_folder()])

    @trial
    def test_a_lost_host_comes_back(self):
        job = self.launch_on("n0:1,n1:1,n2:1,n3:1", "--quarantine", "3s")
        self.until_step(5, job)
        self.lose(2)
        until(lambda: len(self.events()) >= 2 or job.poll() is not None, job)
        until(lambda: self.resize(4).returncode == 0 or job.poll() is not None, job)
        self.require_complete(job)
        events = self.events()
        gone = next(event for event in events if event["kind"] == "host_gone")
        self.assertEqual((gone["host"], gone["source"]), ("n2", "memory"), events)
        self.assertNotEqual(gone["to_layout"], "dp4.z1")
        self.assertIn("dp4.z1", [event["to_layout"] for event in events[2:]], events)

    @trial
    def test_sole_parts_of_a_lost_host_come_from_their_buddies(self):
        for layout in ("tp2.pp2", "dp2.tp2.z1"):  # pp2 and tp2 inside and across hosts
            with self.subTest(layout=layout):
                self.setUp()
                job = self.launch_on("n0:2,n1:2", "--quarantine", "60s", layout=layout)
                self.until_step(4, job)
                self.lose(3)
                self.require_complete(job)
                gone = [event for event in self.events() if event["kind"] == "host_gone"]
                self.assertEqual([(event["host"], event["source"]) for event in gone], [("n1", "memory")], self.events())

    @trial
    def test_a_rank_that_dies_on_a_host_takes_only_its_slot_along(self):
        job = self.launch_on("n0:2,n1:2", "--quarantine", "60s", layout="dp2.tp2.z1")
        self.until_step(4, job)
        os.kill(self.ranks()[1], signal.SIGKILL)
        self.require_complete(job)
        died = [event for event in self.events() if event["kind"] == "died"]
        self.assertEqual([(event["rank"], event["host"], event["source"]) for event in died], [(1, "n0", "memory")])

    @trial
    def test_a_cut_link_is_a_lost_host(self):
        job = self.launch_on("n0:1,n1:1,n2:1", "--quarantine", "600s", layout="dp3.z1", CHORALE_TIMEOUT="4")
        self.until_step(4, job)
        self.set_link(self.ranks()[2], "down")
        self.require_complete(job)
        gone = [event for event in self.events() if event["kind"] == "host_gone"]
        self.assertEqual([(event["host"], event["source"]) for event in gone], [("n2", "memory")], self.events())

    @trial
    def test_a_cut_link_to_the_supervisor_is_noticed_on_both_sides(self):
        job = self.launch_on("n0:3", "--quarantine", "1s", layout="dp3.z1", CHORALE_TIMEOUT="4", interval=2)
        self.until_step(4, job)
        host = self.processes_beside(self.ranks()[0], first=True)[0]
        self.set_link(host, "down")
        until(lambda: not self.ranks() or job.poll() is not None, job)  # the ranks end although nobody can reach them
        until(lambda: "launch: the host n0 is gone" in self.said() or job.poll() is not None, job)
        self.set_link(host, "up")
        self.require_complete(job, interval=steps)
        gone = [event for event in self.events() if event["kind"] == "host_gone"]
        self.assertEqual([event["host"] for event in gone], ["n0"], self.events())


if __name__ == "__main__":
    unittest.main()
