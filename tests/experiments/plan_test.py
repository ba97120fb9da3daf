"""`chorale plan`: which ranks it plans for, and which algorithms."""
import json
import os
import tempfile
import unittest

from programs import chorale, start

tiny = ["plan", "--preset", "tiny", "--global-batch-size", "8", "--backend", "shm"]


class Plan(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.cache = holder.name

    def plan(self, *words):
        result = start([chorale, *tiny, *words], XDG_CACHE_HOME=self.cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def refused(self, *words, says):
        result = start([chorale, *tiny, *words])
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertEqual(len(result.stderr.splitlines()), 3, result.stderr)
        for part in says:
            self.assertIn(part, result.stderr)

    def test_what_a_word_leaves_out_of_dp_is_one_replica_or_what_the_ranks_leave(self):
        for words, layout in ((["--layout", "tp2.pp2"], "dp1.tp2.pp2: 4 ranks"), ([], "dp1: 1 ranks"),
                              (["--layout", "dp2.tp2"], "dp2.tp2: 4 ranks"),
                              (["--layout", "tp2", "--ranks", "8"], "dp4.tp2: 8 ranks")):
            with self.subTest(words=words):
                self.assertTrue(self.plan(*words).startswith(layout))

    def test_ranks_that_the_layout_does_not_fill_are_refused(self):
        self.refused("--layout", "tp2.pp2", "--ranks", "9", says=["9 / (tensor 2 × pipeline 2) is no whole number", "try "])
        self.refused("--layout", "dp2", "--ranks", "8", says=["2 ranks; there are 8", "try dp8"])

    def test_only_what_fits_the_model_is_recommended_and_at_once(self):
        self.refused("--layout", "tp2", "--ranks", "7",
                     says=["7 / (tensor 2 × pipeline 1) is no whole number", "try dp1.pp7\n"])
        self.refused("--layout", "dp1000000.tp1000000", says=["1000000"])
        self.refused("--layout", "dp3.pp2", says=["global-batch-size 8 must be a multiple of data_parallel 3,"])

    def test_auto_is_planned_as_a_run_would_choose(self):
        words = ["--layout", "tp4"]
        self.assertNotIn("auto", self.plan(*words, "--algorithm", "ring"))
        self.assertNotIn("one host", self.plan(*words))
        self.assertIn("auto chooses by the cost model", self.plan(*words))
        cpu = json.loads(start([chorale, "info", "--format", "json"]).stdout)["machine"]["cpu"]
        machine = f"{cpu}, {os.sysconf('SC_NPROCESSORS_ONLN')} cores"
        os.makedirs(f"{self.cache}/chorale")
        sums = []
        for algorithm in ("ring", "recursive_doubling"):
            with open(f"{self.cache}/chorale/tuning.json", "w") as file:
                json.dump({"schema": "chorale tuning", "version": 1, "machine": machine, "prices": {}, "choices": [
                    {"backend": "shm", "op": "all_reduce", "ranks": 4, "in_place": True, "bytes": 4096,
                     "algorithm": algorithm, "chunks": 1, "time_us": 1, "runner_up": "", "ratio": 1}]}, file)
            with self.subTest(algorithm=algorithm):
                tuned = self.plan(*words)
                self.assertIn("auto chooses by what `chorale tune` measured here", tuned)
                named = self.plan(*words, "--algorithm", algorithm)
                self.assertEqual(self.sent(tuned), self.sent(named))
                sums.append(self.sent(tuned))
        self.assertNotEqual(*sums)

    def sent(self, text):
        lines = text.splitlines()
        return lines[[line.startswith("sent by that rank") for line in lines].index(True) + 1:]

    def test_what_is_assumed_of_the_hosts_is_said(self):
        result = start([chorale, "plan", "--preset", "tiny", "--layout", "tp2"], XDG_CACHE_HOME=self.cache)
        self.assertIn("if all ranks are on one host", result.stdout)


if __name__ == "__main__":
    unittest.main()
