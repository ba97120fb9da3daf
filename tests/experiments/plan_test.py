"""Tests `chorale plan` as a user sees it. Covers the assumed number of ranks, the chosen algorithms, the table of all
layouts, and the cost of snapshots."""
import csv
import glob
import json
import math
import os
import re
import tempfile
import unittest

import h5py

from programs import chorale, start

tiny = ["plan", "--preset", "tiny", "--global-batch-size", "8", "--backend", "shm"]


def daly(steps, copy, restart, between_faults):
    """the goodput of `steps` seconds between snapshots"""
    return steps / (between_faults * math.exp(restart / between_faults) * math.expm1((steps + copy) / between_faults))


class Plan(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.cache = holder.name

    def plan(self, *words, code=0):
        result = start([chorale, *tiny, *words], XDG_CACHE_HOME=self.cache)
        self.assertEqual(result.returncode, code, result.stderr)
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

    def test_the_figures_that_introductions_quote(self):
        gpt3 = ["--preset", "gpt3-175b", "--layout", "dp1", "--global-batch-size", "1"]
        text = self.plan(*gpt3, "--train-tokens", "300e9", "--sustained-flops", "35e12")
        self.assertIn("states: 16 bytes a parameter (values 4, gradients 4, optimizer 8), 2.54 TiB in all\n", text)
        self.assertIn("300 billion tokens: 146484375 steps, 3.19e+23 flops", text)
        self.assertAlmostEqual(float(re.search(r"([\d.]+) years of one rank", text)[1]), 288, delta=1)
        text = self.plan(*gpt3, "--dtype", "bf16")
        keeps = "each of many replicas keeps {} with ZeRO-1, {} with ZeRO-2, almost nothing with ZeRO-3\n"
        self.assertIn("states: 18 bytes a parameter (values 2, gradients 4, optimizer 12), 2.86 TiB in all\n  "
                      + keeps.format("6 (1/3)", "2 (1/9)"), text)
        self.assertIn("with bf16 gradients, as papers count: 16 bytes; " + keeps.format("4 (1/4)", "2 (1/8)"), text)
        for words, ratio in (([], 1.5), (["--dtype", "bf16", "--grad-dtype", "bf16"], 1.5), (["--dtype", "bf16"], 1.0)):
            text = self.plan(*gpt3[:2], "--layout", "dp2.z3", "--global-batch-size", "2", *words)
            # Embedding and head share one table. So ZeRO-3 gathers this table twice as often as other weights.
            self.assertAlmostEqual(float(re.search(r"ZeRO-3 sends ([\d.]+) times", text)[1]), ratio, delta=0.01)

        native = start([chorale, *tiny[:-1], "mpi", "--algorithm", "native", "--layout", "dp2.z1"])
        self.assertEqual(native.returncode, 0, native.stderr)
        self.assertNotIn("ZeRO-1 sends", native.stdout)
        self.assertNotIn("as papers count", self.plan("--numerics", "exact"))

    def test_the_loads_of_divided_experts_are_shown_unless_the_plan_knows_them(self):
        experts = ["--preset", "tiny-moe", "--layout", "dp2.ep2"]
        rows = r"take (\d+) rows .* if the routing is balanced.*; (\d+) under --routing zipf; at most (\d+)\n"
        balanced, zipf, most = map(int, re.search(rows, self.plan(*experts)).groups())
        self.assertEqual((balanced, most), (2 * 4 * 24, 2 * 4 * 24 * 2))  # ranks × sequences × tokens (× choices)
        self.assertTrue(balanced < zipf < most)
        self.assertNotIn("if the routing is balanced", self.plan(*experts, "--routing", "zipf"))
        sent = [re.search(r"all_to_all +10 +(\S+ \S+)", self.plan(*experts, *words)).group(1)
                for words in ([], ["--routing", "balanced"], ["--routing", "one"])]
        self.assertEqual(sent[0], sent[1])
        self.assertNotEqual(sent[0], sent[2])

    def test_ranks_that_the_layout_does_not_fill_are_refused(self):
        self.refused("--layout", "tp2.pp2", "--ranks", "9", says=["9 / (tensor 2 × pipeline 2) is not an integer", "try "])
        self.refused("--layout", "dp2", "--ranks", "8", says=["2 ranks; there are 8", "try dp8"])

    def test_the_longest_sequence_fits_and_the_next_length_does_not(self):
        words = ["plan", "--preset", "nano", "--memory-limit", "400M", "--micro-batch-size", "1", "--global-batch-size", "4"]
        found = start([chorale, *words, "--layout", "dp1.cp4", "--longest-sequence", "--format", "csv"])
        self.assertEqual(found.returncode, 0, found.stderr)
        rows = list(csv.DictReader(found.stdout.splitlines()))
        self.assertEqual([(row["layout"], row["recompute"]) for row in rows],
                         [(layout, how) for layout in ("dp1.cp4", "dp4") for how in ("none", "selective", "full")])
        longest = {(row["layout"], row["recompute"]): int(row["seq-length"]) for row in rows}
        for layout in ("dp1.cp4", "dp4"):
            self.assertLessEqual(longest[layout, "none"], longest[layout, "selective"])
            self.assertLess(longest[layout, "selective"], longest[layout, "full"])
        self.assertGreater(longest["dp1.cp4", "none"], 2 * longest["dp4", "none"])
        for (layout, how), tokens in longest.items():
            step = 2048 if layout == "dp1.cp4" else 256
            for length, fits in ((tokens, True), (tokens + step, False)):
                plan = start([chorale, *words, "--layout", layout, "--recompute", how, "--seq-length", str(length)])
                self.assertEqual("the layout does not fit" not in plan.stdout, fits, f"{layout} {how} {length}")
        self.refused("--layout", "dp2", "--longest-sequence", says=["memory-limit is auto"])

    # The weights and gradients of gpt2 need 944 MiB.
    def test_the_longest_sequence_counts_only_what_stays_in_memory(self):
        words = ["plan", "--preset", "gpt2", "--layout", "dp1.z3", "--global-batch-size", "2", "--micro-batch-size", "1",
                 "--memory-limit", "700M"]
        places = ["--place", "parameters=file,gradients=file,optimizer=file"]
        found = start([chorale, *words, *places, "--longest-sequence", "--format", "csv"])
        self.assertEqual(found.returncode, 0, found.stderr)
        longest = {row["recompute"]: row["seq-length"] for row in csv.DictReader(found.stdout.splitlines())}
        self.assertGreater(int(longest["none"]), 0)
        self.assertGreater(int(longest["full"]), int(longest["none"]))
        self.assertNotIn("does not fit", start([chorale, *words, *places, "--seq-length", longest["full"], "--recompute",
                                                "full"]).stdout)

    def test_only_what_fits_the_model_is_recommended_and_at_once(self):
        self.refused("--layout", "tp2", "--ranks", "7",
                     says=["7 / (tensor 2) is not an integer", "try dp1.cp7 or dp1.pp7\n"])
        self.refused("--layout", "dp1000000.tp1000000", says=["1000000"])
        self.refused("--layout", "dp3.pp2", says=["global-batch-size 8 must be a multiple of data_parallel 3 ("])

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
        head = "sent in a step by the same rank of each stage: replica 0, shard 0"
        return lines[[line.startswith(head) for line in lines].index(True) + 1:]

    def test_what_is_assumed_of_the_hosts_is_said(self):
        result = start([chorale, "plan", "--preset", "tiny", "--layout", "tp2"], XDG_CACHE_HOME=self.cache)
        self.assertIn("if all ranks are on one host", result.stdout)

    def all_layouts(self, *words):
        return json.loads(self.plan("--layout", "all", "--format", "json", *words))

    def test_all_layouts_are_a_table_whose_rows_are_what_each_layout_alone_is_planned_to_cost(self):
        rows = {row["layout"]: row for row in self.all_layouts("--ranks", "4")}
        for layout in ("dp4", "dp4.z3", "dp1.tp4.sp", "dp2.tp2", "dp1.pp4"):
            self.assertIn(layout, rows)
        for layout in ("dp4", "dp1.tp4"):
            with self.subTest(layout=layout):
                stage, = json.loads(self.plan("--layout", layout, "--format", "json"))["stages"]
                self.assertEqual((stage["peak_bytes"], stage["states_bytes"]),
                                 (rows[layout]["memory_bytes"], rows[layout]["state_bytes"]))

    def test_json_is_one_document_of_numbers(self):
        plan = json.loads(self.plan("--layout", "dp2.pp2", "--memory-limit", "1G", "--format", "json"))
        self.assertEqual((plan["layout"], plan["ranks"], plan["memory_limit_bytes"], plan["fits"]),
                         ("dp2.pp2", 4, 1 << 30, True))
        self.assertEqual([stage["stage"] for stage in plan["stages"]], [0, 1])
        for stage in plan["stages"]:
            self.assertEqual(stage["states_bytes"], stage["params_bytes"] + stage["grads_bytes"] + stage["optimizer_bytes"])
            self.assertEqual({type(value) for key, value in stage.items() if key != "flops"}, {int})
        self.assertEqual({type(row["sent_bytes"]) for row in plan["traffic"]}, {int})
        tables = self.plan("--layout", "dp2.pp2", "--format", "csv").split("\n\n# traffic\n")
        for table, name in zip(tables, ("stages", "traffic"), strict=True):
            for row, same in zip(csv.DictReader(table.splitlines()), plan[name], strict=True):
                self.assertEqual(row, {key: str(value) for key, value in same.items()} | (
                    {"flops": row["flops"]} if "flops" in row else {}))

    def test_equal_rows_of_neighboring_stages_are_one(self):
        words = ["--layout", "dp2.pp4", "--num-layers", "8"]
        rows = [line.split() for line in self.sent(self.plan(*words)) if re.match(r" *\d", line)]
        self.assertEqual({(row[0], row[1]) for row in rows if row[1] in ("dp", "pp")},
                         {(stages, axis) for stages in ("0", "1-2", "3") for axis in ("dp", "pp")})
        self.assertEqual(len({tuple(row[1:]) for row in rows if row[1] == "dp"}), 3)
        stages = {row["stage"] for row in json.loads(self.plan(*words, "--format", "json"))["traffic"]}
        self.assertEqual(stages, {0, 1, 2, 3})

    def test_a_plan_fits_the_terminal(self):
        for words in (["--layout", "dp2.pp4.z1"], ["--layout", "all", "--ranks", "8"],
                      ["--layout", "dp2.z3", "--place", "optimizer=file", "--offload-folder", self.cache]):
            result = start([chorale, *tiny, *words], XDG_CACHE_HOME=self.cache, COLUMNS="80")
            self.assertEqual(result.returncode, 0, result.stderr)
            with self.subTest(words=words):
                self.assertEqual([line for line in result.stdout.splitlines() if len(line) > 80], [])
            whole = self.plan(*words)  # a pipe gets unbroken lines with the same words
            self.assertEqual(sorted(set(result.stdout.split())), sorted(set(whole.split())))

    def test_what_is_assumed_is_said(self):
        few, many = (self.plan_of("--layout", layout) for layout in ("dp2", "dp256"))
        self.assertIn("\nassumed: f32 (--dtype); backend ", few)
        self.assertIn("if all ranks are on one host", few)
        self.assertNotIn("on one host", many)
        self.assertIn("assumed: f32 (--dtype); rings of messages, because 256 ranks need several hosts", many)
        self.assertNotIn("(--dtype)", self.plan("--layout", "dp2", "--dtype", "bf16"))

    def plan_of(self, *words):
        result = start([chorale, "plan", "--preset", "tiny", "--global-batch-size", "256", *words],
                       XDG_CACHE_HOME=self.cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_sizes_are_binary_and_mean_what_gnu_programs_mean(self):
        for size, words in (("80G", "80 GiB"), ("80GiB", "80 GiB"), ("80GB", "74.5 GiB"), ("80000000000", "74.5 GiB")):
            text = self.plan("--layout", "all", "--ranks", "2", "--memory-limit", size)
            self.assertIn(f"; a rank may hold {words}\n", text)
        for words in (["--layout", "dp2.pp2"], ["--layout", "all", "--ranks", "2"]):
            self.assertNotRegex(self.plan(*words), r"\d [kMGT]B\b")
        self.assertIn("\nBYTES: 80G and 80GiB are 80 · 2³⁰ bytes, 80GB is ", start([chorale, "plan", "--help"]).stdout)

    def test_what_a_table_of_all_layouts_leaves_out_is_said(self):
        text = self.plan("--layout", "all", "--ranks", "8", "--rows", "5")
        head, table, notes = text.split("\n\n")
        many = int(re.search(r"8 ranks: (\d+) legal layouts", head).group(1))
        self.assertEqual(len(table.splitlines()), 6)
        out = [int(n) for n in re.findall(r"(\d+) (?:with larger|no better than|that would not|whose pipeline)", notes)]
        self.assertEqual(5 + sum(out), many, notes)
        whole = self.plan("--layout", "all", "--ranks", "8", "--rows", "0")
        self.assertNotIn("--rows 0 shows them", whole)
        self.assertIn("--rows 0 shows them", notes)

    def plan_on_hosts(self, *words, hosts="2,2"):
        result = start([chorale, "plan", "--preset", "tiny", "--hosts", hosts, *words], XDG_CACHE_HOME=self.cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_on_hosts_the_bytes_that_cross_them_stand_beside_all_bytes(self):
        ring = ["--global-batch-size", "64", "--backend", "mpi", "--algorithm", "ring"]
        text = self.plan_on_hosts("--layout", "dp2.pp2", "--order", "pp,dp", *ring)
        self.assertIn(" cross hosts (n0: 0-1, n1: 2-3)\n", text)
        rows = {tuple(line.split()[:2]): re.findall(r"[\d.]+ \w*B", line)
                for line in text[text.rindex("stage  axis"):].splitlines()[1:]}
        for stage in ("0", "1"):
            self.assertEqual(rows[stage, "dp"][1], "0 B", rows)
            self.assertEqual(*rows[stage, "pp"], rows)
        self.assertIn("; 0 B of ", self.plan_on_hosts("--layout", "dp4", *ring, hosts="4"))
        self.assertTrue(self.plan_on_hosts("--layout", "tp2", *ring).startswith("dp2.tp2: 4 ranks"))
        words = {row["layout"] for row in json.loads(self.plan_on_hosts("--layout", "all", "--format", "json", *ring))}
        self.assertTrue({"dp4", "dp2.pp2"} <= words, words)

    def test_layouts_that_the_hosts_do_not_suit_are_counted_and_left_out(self):
        cp = ["--context-scheme", "ulysses-ring", "--layout", "all", "--rows", "0"]
        uneven, even = (self.plan_on_hosts(*cp, hosts=hosts) for hosts in ("3,1", "2,2"))
        self.assertIn(" legal layouts, ", uneven)
        self.assertIn(" of which do not suit the hosts; ", uneven)
        self.assertNotIn("suit", even)
        self.assertNotIn("cp4", uneven)
        self.assertIn("cp4", even)

    def test_on_hosts_the_order_of_axes_is_chosen_and_explained(self):
        few = ["--global-batch-size", "2"]  # with this batch size, activations have fewer bytes than gradients
        text = self.plan_on_hosts("--layout", "dp2.tp2", *few)
        self.assertRegex(text, r"^order: tp,dp, because dp would send .* in the usual order; now .* cross in all\n"
                               r"dp2\.tp2\.tp-dp: 4 ranks")
        self.assertIn("if all hosts are like this one (--backend)", text)
        self.assertNotIn("order:", self.plan_on_hosts("--layout", "dp2.tp2", "--order", "dp,tp", *few))
        rows = json.loads(self.plan_on_hosts("--layout", "all", "--format", "json", *few))
        self.assertIn("dp2.tp2.tp-dp", {row["layout"] for row in rows})
        self.refused("--layout", "dp4", "--hosts", "2,2", says=["shm connects the ranks of one host, and dp crosses hosts"])
        self.refused("--layout", "dp4", "--hosts", "2,2", "--ranks", "3", says=["4 ranks; there are 3"])

    def test_what_does_not_fit_is_marked_and_last(self):
        rows = self.all_layouts("--ranks", "4")
        limit = sorted(row["memory_bytes"] for row in rows)[len(rows) // 2]
        marked = self.all_layouts("--ranks", "4", "--memory-limit", str(limit))
        self.assertEqual([row["fits"] for row in marked], sorted((row["fits"] for row in marked), reverse=True))
        for row in marked:
            self.assertEqual(row["fits"], "yes" if row["memory_bytes"] <= limit else "no")
        text = self.plan("--layout", "all", "--ranks", "4", "--rows", "0", "--memory-limit", str(limit))
        self.assertEqual(text.count("does not fit\n"), [row["fits"] for row in marked].count("no"))
        self.assertEqual(len(re.findall(r"\d+ % of the limit", text)),
                         sum(0.9 * limit < row["memory_bytes"] <= limit for row in marked))
        alone = self.plan("--layout", marked[-1]["layout"], "--memory-limit", str(limit), code=3)
        self.assertIn(f"the layout does not fit: {marked[-1]['layout']}, a rank of stage", alone)
        tight = next(row["layout"] for row in marked if row["memory_bytes"] == limit)
        self.assertRegex(self.plan("--layout", tight, "--memory-limit", str(limit)),
                         r"\na rank needs (\S+ MiB) of \1, 100 %, so it may fail: libraries and fragmentation come on top\n")
        self.plan("--layout", "all", "--ranks", "4", "--memory-limit", "1M", code=3)  # no layout fits

    def test_flags_for_parts_narrow_the_list(self):
        for words, part in ((["--tp", "2"], ".tp2"), (["--zero", "2"], ".z2"), (["--sequence-parallel"], ".sp"),
                            (["--pp", "2", "--schedule", "gpipe"], ".gpipe")):
            with self.subTest(words=words):
                rows = self.all_layouts("--ranks", "4", *words)
                self.assertTrue(rows)
                for row in rows:
                    self.assertIn(part, row["layout"])

    def test_all_layouts_of_nothing_are_refused(self):
        self.refused("--layout", "all", says=["--layout all needs a number of ranks", "--ranks 8 --layout all"])
        self.refused("--layout", "all", "--ranks", "7", "--tp", "5", says=["no layout is legal", "--tp"])
        self.refused("--layout", "tp2", "--rows", "3", says=["rows has no effect here"])
        one = start([chorale, "train", "--preset", "tiny", "--layout", "all"])
        self.assertEqual(one.returncode, 2, one.stderr)
        self.assertEqual(len(one.stderr.splitlines()), 3, one.stderr)
        self.assertIn("chorale plan --layout all", one.stderr)

    def test_a_launch_keeps_the_planned_bytes(self):
        model = ["--preset", "tiny", "--numerics", "exact"]
        for layout in ("dp2.tp2.z1", "dp2.tp2", "dp4.z3"):
            with self.subTest(layout=layout), tempfile.TemporaryDirectory() as folder:
                planned = json.loads(self.plan(*model, "--layout", layout, "--format", "json"))
                self.assertEqual(planned["snapshot_rank"], 0)
                ran = start([chorale, "launch", "--ranks", "4", "--run-dir", folder, "--", "train", *model, "--threads", "1",
                             "--train-iters", "3", "--layout", layout])
                self.assertEqual(ran.returncode, 0, ran.stderr)
                record, = glob.glob(f"{folder}/*-launch-*/*-train-*/run.h5")
                with h5py.File(record) as file:
                    self.assertEqual(list(file["snapshots/step"]), [1, 2, 3])
                    self.assertEqual(list(file["snapshots/bytes"]), 3 * [planned["snapshot_bytes"]])

    def test_goodput_follows_from_the_predicted_times(self):
        words = ["--preset", "gpt2", "--layout", "dp16.z1", "--global-batch-size", "16", "--machine", "eos"]
        options = ["--snapshot-interval", "4", "--mtbf", "10m", "--restart-time", "5s"]
        plan = json.loads(self.plan(*words, *options, "--format", "json"))
        step, copy, bytes_of_rank = plan["step_s"], plan["snapshot_s"], plan["snapshot_bytes"]
        self.assertAlmostEqual(copy, bytes_of_rank / 50e9 + 8 * 3.7 * bytes_of_rank / 490e9, delta=1e-6 * copy)

        def goodput(interval):
            return daly(interval * step, copy, 5, 600)
        self.assertAlmostEqual(plan["goodput"], goodput(4), places=9)
        self.assertLessEqual(abs(plan["best_snapshot_interval"] - math.sqrt(2 * copy * 600) / step), 2)
        best = plan["best_snapshot_interval"]
        self.assertTrue(best != 4 and goodput(best) > max(goodput(best - 1), goodput(best + 1), goodput(4)), best)
        text = self.plan(*words, *options)
        self.assertIn(" of the fullest rank (rank 0); two generations take ", text)
        self.assertIn(" of a host's memory, and as much again with copies of another host's ranks\n", text)
        self.assertIn(f"; best: --snapshot-interval {best}, goodput {100 * goodput(best):.3g} %\n", text)
        self.assertRegex(self.plan(*words, *options[:2], "--mtbf", "0.1", *options[4:]),
                         r"\n  goodput .*e-\d+ %, with a fault every 100 ms, restarts of 5\.0 s and "
                         r"--snapshot-interval 4: .*, "
                         r"lost steps 0 %, restarts 100 %, so the run makes no progress")
        none = self.plan(*words, "--snapshot-interval", "0", "--format", "json")
        self.assertFalse(any("snapshot" in key or key == "goodput" for key in json.loads(none)), none)

    def test_without_a_rate_the_time_of_snapshots_is_left_out(self):
        words = ["--preset", "gpt2", "--layout", "dp8.z1", "--global-batch-size", "8", "--machine", "megascale"]
        plan = json.loads(self.plan(*words, "--format", "json"))
        self.assertFalse({"snapshot_s", "best_snapshot_interval"} & set(plan), plan)
        self.assertAlmostEqual(plan["goodput"], daly(plan["step_s"], 0, 3, 3600), places=9)
        self.assertIn("; the time of snapshots is left out, because the machine file has no rate for them\n",
                      self.plan(*words))
        self.assertNotIn("goodput", self.plan("--layout", "dp2"))  # the time of a step is unknown
        machine = f"{self.cache}/machine.toml"
        with open(machine, "w", encoding="utf-8") as file:
            file.write('schema = "chorale machine"\nversion = 1\nmachine = "any"\ncores = 2\n[[compute]]\ntype = "f32"\n'
                       "ranks = 1\nproduct = 1e11\nattention = 1e10\nelements = 1e10\nupdate = 3.7e9\n")
        plan = json.loads(self.plan("--layout", "dp1", "--machine", machine, "--format", "json"))
        self.assertAlmostEqual(plan["snapshot_s"], plan["snapshot_bytes"] / 1e9, places=9)
        self.assertAlmostEqual(plan["goodput"], daly(plan["step_s"], plan["snapshot_s"], 3, 3600), places=6)

    def test_options_of_snapshots_need_the_plan_of_one_layout(self):
        for words in (["--snapshot-interval", "2"], ["--mtbf", "2h"], ["--restart-time", "9s"]):
            self.refused("--layout", "all", "--ranks", "2", *words, says=["has no effect here", "the plan of one layout"])
        self.refused("--layout", "dp2", "--mtbf", "0", says=["faults need some time between them", "--mtbf 0s"])


if __name__ == "__main__":
    unittest.main()
