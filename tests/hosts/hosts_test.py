"""Ranks on several hosts, emulated on one machine (tests/hosts/hosts)."""
import os
import subprocess
import tempfile
import unittest

from programs import backends, chorale, start, thorough

hosts = "tests/hosts/hosts"


@unittest.skipUnless("Open MPI" in start(["mpirun", "--version"]).stdout,
                     "the emulated hosts need Open MPI's mpirun")
class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tried = subprocess.run([hosts, "2", "1gbit", "true"], capture_output=True, text=True)
        if tried.returncode:
            raise unittest.SkipTest(f"no hosts can be emulated here: {tried.stderr.strip()}")

    def train(self, layout, backend, runs, meanwhile="", ranks=2, limit=300):
        """Trains briefly on two hosts. The command `meanwhile` runs on the switch; $said holds the training's output."""
        command = f"""
            set -e
            said={runs}/said; touch $said
            mpirun --bind-to none --map-by node -np {ranks} --host n0:{ranks},n1:{ranks} {chorale} train --preset nano \
              --layout {layout} --backend {backend} --train-iters 4 --eval-samples 1 --threads 1 --no-save \
              --run-dir {runs} > $said 2>&1 & job=$!
            {meanwhile or "true"}
            code=0; wait $job || code=$?
            cat $said; exit $code"""
        done = start([hosts, "2", "1gbit", "bash", "-c", command], limit)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("bytes sent: as planned", done.stdout)

    def test_training_on_two_hosts(self):
        for backend in set(backends()) - {"shm"}:
            for layout, ranks in [("dp2.z3", 2), ("dp2.pp2", 4)][: 2 if thorough else 1]:
                with self.subTest(backend=backend, layout=layout), tempfile.TemporaryDirectory() as runs:
                    self.train(layout, backend, runs, ranks=ranks)

    @unittest.skipUnless(thorough and "ucx" in backends(), "half a minute: in `make test-all`, where UCX works")
    def test_a_host_that_was_cut_off_for_a_while_is_not_lost(self):
        # Under UCX the kernel sends keepalive probes after 10 s, every 2 s, and gives up after tcp_keepalive_probes of them.
        cut = f"""
            for host in n0 n1; do {hosts} --enter $host 'echo 1 > /proc/sys/net/ipv4/tcp_keepalive_probes'; done
            until grep -q "loss cannot fall" $said; do kill -0 $job; sleep 0.01; done
            ip link set switch down; sleep 16; ip link set switch up"""
        with tempfile.TemporaryDirectory() as runs:
            self.train("pp2", "ucx", runs, cut)


if __name__ == "__main__":
    unittest.main()
