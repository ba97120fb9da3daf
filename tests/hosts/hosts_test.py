"""Tests runs on several hosts, which experiments/tools/hosts emulates on one machine."""
import json
import os
import re
import signal
import struct
import subprocess
import tempfile
import time
import tomllib
import unittest

import alive
from programs import backends, chorale, only_in_test_all, require_emulated_hosts, sample, start, thorough

hosts = "experiments/tools/hosts"


@unittest.skipUnless("Open MPI" in start(["mpirun", "--version"]).stdout,
                     "the emulated hosts need Open MPI's mpirun")
class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_emulated_hosts()

    def run_on_hosts(self, layout, backend, runs, meanwhile="", ranks=2, limit=300, order="node", more="", steps=2,
                     shape="--num-layers 2 --seq-length 32"):
        """Trains briefly on two emulated hosts. Meanwhile, the command `meanwhile` runs on the emulated switch. In this
        command, $said is the file with the output of the training."""
        slots = ranks // 2
        command = f"""
            set -e
            said={runs}/said; touch $said
            mpirun --bind-to none --map-by {order} -np {ranks} --host n0:{slots},n1:{slots} {chorale} train --preset nano \
              {shape} --layout {layout} --backend {backend} {more} --train-iters {steps} --eval-samples 1 \
              --threads 1 --no-save --run-dir {runs} > $said 2>&1 & job=$!
            {meanwhile or "true"}
            code=0; wait $job || code=$?
            cat $said; exit $code"""
        return start([hosts, "with", "2", "1gbit", "bash", "-c", command], limit)

    def train(self, *args, **kwargs):
        done = self.run_on_hosts(*args, **kwargs)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("bytes sent: as planned", done.stdout)
        self.assertRegex(done.stdout, r"network interfaces: n0 sent \S+ .iB, n1 sent \S+ .iB")
        return done.stdout

    def test_training_on_two_hosts(self):
        for backend in set(backends()) - {"shm"}:
            for layout, ranks in [("dp2.z3", 2), ("dp2.pp2", 4)][: 2 if thorough else 1]:
                with self.subTest(backend=backend, layout=layout), tempfile.TemporaryDirectory() as runs:
                    self.train(layout, backend, runs, ranks=ranks)

    @unittest.skipUnless("shm" in backends(), "no shared memory here")
    def test_an_axis_inside_hosts_may_use_shared_memory(self):
        cases = [("dp2.tp2", "tp=shm,dp=mpi", 4), ("dp2", "tp=shm,mpi", 2),
                 ("dp2.pp2.z1", "dp=shm,pp=mpi", 4), ("dp2.tp2.z1", "auto", 4)]
        if "shm+ucx" in backends():
            cases[1:1] = [("dp4.z3", "shm+ucx", 4)]
        for layout, backend, ranks in cases if thorough else cases[:2]:
            with self.subTest(layout=layout, backend=backend), tempfile.TemporaryDirectory() as runs:
                self.train(layout, backend, runs, ranks=ranks, order="slot")

    @unittest.skipUnless("shm" in backends(), "no shared memory here")
    def test_shared_memory_across_hosts_is_refused_with_what_would_work(self):
        for layout, backend, order, says in [
                ("dp2.tp2", "tp=shm,dp=mpi", "node", ["shm connects the ranks of one host, and tp crosses hosts",
                                                      "n0: 0,2, n1: 1,3", "mpirun --map-by slot", "--order tp,dp",
                                                      "--backend tp="]),
                ("tp2.pp2", "pp=shm,mpi", "slot", ["pp crosses hosts", "n0: 0-1, n1: 2-3", "--order tp,pp"]),
                ("tp2.pp2", "pp=shm,tp=shm,mpi", "slot", ["pp crosses hosts", "n0: 0-1, n1: 2-3", "--layout dp2.tp2"]),
                ("dp4", "shm", "slot", ["shm connects the ranks of one host", "n0: 0-1, n1: 2-3", "--backend auto"])]:
            with self.subTest(layout=layout, order=order), tempfile.TemporaryDirectory() as runs:
                refused = self.run_on_hosts(layout, backend, runs, ranks=4, order=order, more="--order pp,dp,tp")
                self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
                for words in says:
                    self.assertIn(words, refused.stdout)
                self.assertEqual(refused.stdout.count("error:"), 1, refused.stdout)

    def test_checkpoints_of_hosts_that_share_a_folder_and_of_hosts_that_do_not(self):
        # The emulated hosts share temporary folders, but each host has its own /dev/shm.
        saved = """
            train() { mpirun --bind-to none --map-by slot -np 4 --host n0:2,n1:2 %s train --preset nano --num-layers 2 \
                        --seq-length 32 --layout dp2.tp2.z1 --backend mpi --eval-samples 1 --threads 1 --run-dir $folder \
                        "$@" 2>&1; }
            on() { %s --enter "$@"; }
            for host in n0 n1; do on $host mkdir -p $folder; done
            train --train-iters 1 || exit
            run=$(on n0 ls $folder | grep train)""" % (chorale, hosts)
        load = "train --train-iters 2 --load $folder/$run"
        # In this script, tar fails if a host has no file to copy.
        copy = """
            files="tar -C $folder/$run/checkpoints/step-1"
            on n0 $files -c rank-0.safetensors rank-1.safetensors | on n1 $files -x &&
            on n1 $files -c rank-2.safetensors rank-3.safetensors | on n0 $files -x || exit"""

        def said(folder, *commands):
            script = "\n".join([f"set -o pipefail; folder={folder}", saved, *commands])
            done = start([hosts, "with", "2", "none", "bash", "-c", script], 300)
            return done.returncode, done.stdout + done.stderr

        with tempfile.TemporaryDirectory() as folder:
            code, text = said(folder, load)
            self.assertEqual(code, 0, text)
            self.assertNotIn("do not share", text)
        code, text = said("/dev/shm/runs", load)
        self.assertEqual(code, 2, text)
        self.assertRegex(text, r"warning: the hosts do not share /dev/shm/runs/\S+: checkpoints lie in parts on 2")
        self.assertRegex(text, r"(?m)^error: hosts lack files of the checkpoint\n  \S+/step-1: n0 lacks rank-2.safetensors, "
                               r"rank-3.safetensors; n1 lacks rank-0.safetensors, rank-1.safetensors$")
        code, text = said("/dev/shm/runs", copy, load)
        self.assertEqual(code, 0, text)
        self.assertIn("step 2/2", text)

    def test_the_order_of_axes_is_chosen_by_the_bytes_between_hosts(self):
        cases = [("dp2.tp2", "node", "order: tp,dp, because tp would send"), ("tp2.pp2.tp-pp", "slot", None),
                 ("dp2.tp2", "slot", None)]
        for layout, order, says in sample(cases, 2):
            with self.subTest(layout=layout, order=order), tempfile.TemporaryDirectory() as runs:
                said = self.train(layout, "mpi", runs, ranks=4, order=order, shape="--num-layers 2")
                self.assertEqual(re.findall(r"order: .*? because \w+ would send", said), [says] if says else [], said)

    def crossing(self, *words):
        """Returns the number of bytes per step that the plan expects between two hosts."""
        plan = start([chorale, "plan", "--preset", "nano", "--num-layers", "2", "--seq-length", "32", "--backend", "mpi",
                      "--hosts", "2,2", "--format", "json", *words])
        return sum(row["across_hosts_bytes"] for row in json.loads(plan.stdout)["across_hosts"])

    def test_the_interfaces_carry_the_bytes_that_a_plan_says_cross_hosts(self):
        units = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
        how = ["--algorithm", "ring", "--dtype", "bf16"]
        planned = 2 * self.crossing("--layout", "dp4", *how)  # bytes of two steps
        with tempfile.TemporaryDirectory() as runs:
            said = self.train("dp4", "mpi", runs, ranks=4, order="slot", more=" ".join(how))
        carried = sum(float(number) * units[unit] for number, unit in re.findall(r"n\d sent ([\d.]+) (\w+)", said))
        self.assertTrue(planned < carried < 1.1 * planned, (planned, carried))  # protocol headers add some bytes

    @only_in_test_all("fit_test.cpp fits prices between hosts, and bench_test.py calibrates")
    def test_the_prices_of_all_collectives_between_hosts_are_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            machine = f"{folder}/machine.toml"
            tune = f"{chorale} tune all --calibrate --in-place no -b 1K -e 1K -n 1 -w 1 --machine {machine}"
            done = start([hosts, "with", "2", "1gbit", "bash", "-c",
                          f"mpirun --bind-to none --map-by slot -np 2 --host n0:1,n1:1 {tune}"], 300)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(f"written to {machine}", done.stdout)
            with open(machine, "rb") as file:
                levels = tomllib.load(file)["level"]
            self.assertEqual([(level["span"], level["ranks"], level["hosts"]) for level in levels],
                             [("host", 2, 2), ("network", 2, 2)])
            self.assertEqual(len({level["backend"] for level in levels} & {"shm+ucx", "ucx", "mpi"}), 1, levels)
            shown = start([chorale, "show", "all_to_all", "pairwise", "--hosts", "1,1", "--machine", machine]).stdout
            self.assertRegex(shown, r"(?m)^time    1.0 KiB in .* on " + re.escape(levels[0]["backend"]))

    def refused(self, command, *says, status=2):
        """Runs the command on the emulated switch that connects two hosts. The command must end with one error of three
        lines, which must contain the given words."""
        done = start([hosts, "with", "2", "none", "bash", "-c", command], 120)
        text = done.stdout + done.stderr
        self.assertEqual(done.returncode, status, text)
        for words in says:
            self.assertIn(words, text)
        error = re.search(r"(?m)^error: .*\n  \S.*\n  \S.*$", text)
        self.assertTrue(error, text)

    @only_in_test_all('"at the network interfaces, a dispatch by host…" counts the same bytes')
    def test_a_dispatch_by_host_sends_each_token_to_a_host_once(self):
        units = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
        how = ["--algorithm", "ring", "--num-experts", "8", "--moe-router-topk", "4", "--routing", "uniform",
               "--global-batch-size", "16"]
        planned, carried = {}, {}
        for dispatch in ("plain", "by-host"):
            words = [*how, "--moe-dispatch", dispatch]
            planned[dispatch] = 4 * self.crossing("--layout", "dp4.ep4", *words)  # bytes of four steps
            with tempfile.TemporaryDirectory() as runs:
                said = self.train("dp4.ep4", "mpi", runs, ranks=4, order="slot", more=" ".join(words), steps=4)
            carried[dispatch] = sum(float(number) * units[unit]
                                    for number, unit in re.findall(r"n\d sent ([\d.]+) (\w+)", said))
            self.assertTrue(planned[dispatch] < carried[dispatch] < 1.1 * planned[dispatch], (planned, carried))
        saved = carried["plain"] - carried["by-host"]
        self.assertAlmostEqual(saved / (planned["plain"] - planned["by-host"]), 1, delta=0.15)
        self.assertLess(carried["by-host"], carried["plain"])

    def test_a_network_interface_that_reaches_no_other_host_is_refused(self):
        start_on_both = "timeout 60 mpirun --bind-to none --map-by slot -np 2 --host n0:1,n1:1"
        self.refused(f"{start_on_both} --mca btl_tcp_if_include lo {chorale} info",
                     "rank 0 on n0: OMPI_MCA_btl_tcp_if_include = lo, which is the loopback interface; interfaces: eth0",
                     "set it to eth0")
        self.refused(f"{start_on_both} -x UCX_NET_DEVICES=lo {chorale} info", "UCX_NET_DEVICES = lo")
        # Each host has a private network behind this interface, like the network behind docker0 on many machines.
        alone = f"""
            for host in n0 n1; do
              {hosts} --enter $host 'ip link add alone type bridge
                ip address add 172.17.0.1/16 dev alone; ip link set alone up'
            done"""
        self.refused(f"{alone}; {start_on_both} --mca pml ob1 --mca btl_tcp_if_include alone {chorale} info",
                     "ranks cannot reach those of other hosts", "MPI may use alone; interfaces: ", "eth0 (10.77.1.",
                     "--mca btl_tcp_if_include NAME")

    def test_hosts_with_another_program_or_other_data_are_refused(self):
        with tempfile.TemporaryDirectory() as folder, open(chorale, "rb") as program:
            image = bytearray(program.read())
            image[image.index(struct.pack("<III", 4, 20, 3) + b"GNU\0") + 16] ^= 1  # changes the first byte of the build id
            other = os.path.join(folder, "chorale")
            with open(other, "wb") as copy:
                copy.write(image)
            os.chmod(other, 0o755)
            self.refused(f"mpirun --bind-to none -np 1 --host n0 {chorale} info : -np 1 --host n1 {other} info",
                         "hosts run different builds of the program", "rank 0 on n0: ", "rank 1 on n1: ")
        with tempfile.TemporaryDirectory() as folder:  # all hosts share this folder, but not /dev/shm
            self.refused(f"""
                set -e
                for host in n0 n1; do
                  seq -f $host-%g 20000 > {folder}/$host
                  {chorale} data tokenize {folder}/$host --out {folder}/$host.bin > /dev/null
                  {hosts} --enter $host cp {folder}/$host.bin /dev/shm/text.bin
                done
                mpirun --bind-to none --map-by slot -np 2 --host n0:1,n1:1 {chorale} train --preset nano --layout dp2 \
                  --data /dev/shm/text.bin --no-save --run-dir {folder}""",
                         "hosts have different input files", "/dev/shm/text.bin: rank 0 on n0: ", "rank 1 on n1: ")

    def test_a_missing_host_and_a_rank_count_that_does_not_divide_are_refused(self):
        done = start([hosts, "with", "2", "none", "bash", "-c",
                      f"timeout 60 mpirun --bind-to none -np 2 --host n0,n7 {chorale} info"], 120)
        self.assertNotIn(done.returncode, [0, 124], done.stdout + done.stderr)
        self.assertIn("n7", done.stdout + done.stderr)
        self.refused(f"mpirun --bind-to none -np 3 --host n0:2,n1:1 {chorale} train --preset nano --layout tp2",
                     "the layout does not divide the number of ranks", "world 3 / (tensor 2")

    @unittest.skipUnless(thorough and "ucx" in backends(), "half a minute: in `make test-all`, where UCX works")
    def test_a_host_that_was_cut_off_for_a_while_is_not_lost(self):
        # Under UCX, the kernel sends the first keepalive probe after 10 s and further probes every 2 s. The kernel gives up
        # after tcp_keepalive_probes probes.
        cut = f"""
            for host in n0 n1; do {hosts} --enter $host 'echo 1 > /proc/sys/net/ipv4/tcp_keepalive_probes'; done
            until grep -q "loss cannot fall" $said; do kill -0 $job; sleep 0.01; done
            ip link set switch down; sleep 16; ip link set switch up"""
        with tempfile.TemporaryDirectory() as runs:
            self.train("pp2", "ucx", runs, cut, steps=12)


@unittest.skipUnless("Open MPI" in start(["mpirun", "--version"]).stdout,
                     "the emulated hosts need Open MPI's mpirun")
class HostsTool(unittest.TestCase):
    """Tests the script experiments/tools/hosts: its commands up, run, exec, rate, status and down, and that nothing remains
    after a kill."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.state = os.path.join(self.folder.name, "hosts")
        tried = self.hosts("up", "2", "--rate", "1gbit")
        if tried.returncode and "cannot be emulated" in tried.stderr:
            self.skipTest(tried.stderr)
        self.assertEqual(tried.returncode, 0, tried.stderr)
        self.addCleanup(self.hosts, "down")

    def hosts(self, *words):
        return subprocess.run([hosts, *words], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "EMULATED_HOSTS": self.state})

    def rows(self):
        lines = self.hosts("status").stdout.splitlines()
        return [line.split() for line in lines[1:]]

    def first_process(self):
        with open(self.state) as state:
            return int(state.read().split()[0])

    def assert_gone(self, process):
        self.assertIn("no hosts are up", self.hosts("status").stdout)
        self.assertEqual(os.listdir(self.folder.name), [])
        self.assertFalse(os.path.exists(f"/proc/{process}"))

    def test_hosts_go_up_run_programs_and_go_down(self):
        first = self.first_process()
        ran = self.hosts("run", "-np", "4", "bash", "-c", "echo $(hostname) $(ls /dev/shm | grep -c ^hosts$)")
        self.assertEqual(sorted(ran.stdout.split("\n"))[1:], ["n0 0", "n0 0", "n1 0", "n1 0"], ran.stdout + ran.stderr)
        self.assertEqual(self.hosts("exec", "n1", "hostname").stdout, "n1\n")
        self.assertEqual(self.hosts("exec", "login", "pwd").stdout, os.getcwd() + "\n")
        self.assertEqual([row[:4] for row in self.rows()],
                         [["n0", "10.77.1.1", "1gbit", "0"], ["n1", "10.77.1.2", "1gbit", "0"]])
        self.hosts("rate", "10mbit")
        before = int(self.rows()[0][4])
        self.hosts("exec", "n0", "bash", "-c", "head -c 300000 /dev/zero > /dev/udp/10.77.1.2/9")
        self.assertEqual(self.rows()[0][2], "10mbit")
        self.assertIn("rate 10Mbit", self.hosts("exec", "n1", "tc", "qdisc", "show", "dev", "eth0").stdout)
        self.assertGreater(int(self.rows()[0][4]), before)
        self.assertEqual(self.hosts("exec", "n1", "false").returncode, 1)
        self.assertEqual(self.hosts("down").stdout, "n0 to n1 are down\n")
        self.assert_gone(first)

    def test_mistakes_are_refused_in_three_lines(self):
        for words, says in [(["up", "2"], "already"), (["up", "0"], "wrong number"),
                            (["up", "2", "--rate", "fast"], "100mbit"),
                            (["exec", "n2", "true"], "n0 to n1"), (["run", "hostname"], "number of ranks is missing"),
                            (["rate", "x"], "wrong rate"), (["with", "2", "true"], "with needs"), (["upp"], "there are up")]:
            refused = self.hosts(*words)
            self.assertEqual((refused.returncode, refused.stderr.count("\n")), (2, 3), words)
            self.assertIn(says, refused.stderr)

    def test_whatever_is_killed_nothing_remains(self):
        first = self.first_process()
        run = subprocess.Popen([hosts, "run", "-np", "2", "sleep", "1000"], env={**os.environ, "EMULATED_HOSTS": self.state},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        alive.until(lambda: "0" not in [row[3] for row in self.rows()], run)  # ranks are on both hosts
        run.kill()
        run.wait()
        while [row[3] for row in self.rows()] != ["0", "0"]:  # at the first check, mpirun may not have ended yet
            time.sleep(0.05)
        host = int(self.hosts("exec", "login", "cat", "/dev/shm/n1").stdout)
        self.hosts("exec", "login", "kill", "-KILL", str(host))
        while "a host had died" not in (said := self.hosts("status").stdout) and "n1" in said:
            time.sleep(0.05)  # at the first check, the host may not have ended yet
        self.assertIn("a host had died", said)
        self.assert_gone(first)

        again = self.hosts("up", "1", "--rate", "none")
        self.assertEqual(again.returncode, 0, again.stderr)
        first = self.first_process()
        os.kill(first, signal.SIGKILL)
        while os.path.exists(f"/proc/{first}"):
            time.sleep(0.05)
        self.assert_gone(first)


if __name__ == "__main__":
    unittest.main()
