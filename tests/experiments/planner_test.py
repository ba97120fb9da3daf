"""Tests `chorale plan` for systems of accelerators. Covers the comparison with published tables, the search, pictures, and
wrong input."""
import csv
import json
import os
import re
import unittest

from in_folder import InFolder
from programs import chorale, sample, start, thorough

published = "experiments/published"
gpt3 = ["plan", "--preset", "gpt3-175b", "--dtype", "bf16", "--machine", "selene"]


def read(path):
    with open(path) as file:
        return file.read()


class Planner(InFolder):
    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_published_tables_are_predicted_within_the_marks(self):
        # Limits in percent for the mean, largest and median error, and for the mean error after a fit to two rows.
        marks = {"PTD-P, table 1": (6, 15, None, 1.5), "PTD-P, table 2, PTD-P": (6, 15, None, None),
                 "PTD-P, table 2, ZeRO-3": (6, 15, None, None),
                 "Korthikanti, table 5, full recomputation": (6, 15, None, None),
                 "Korthikanti, table 5, sequence parallel, selective recomputation": (6, 15, None, None),
                 "MegaScale, table 2, Megatron-LM": (6, 15, None, 1.5), "MLPerf v5.0, Llama 3.1 405B": (6, 15, None, 1.5),
                 "MLPerf v5.0, Llama 3.1 405B, GB200": (6, 8, None, None),
                 "MLPerf v5.0, Llama 3.1 405B, H200": (6, 8, None, None),
                 "MLPerf v5.1, Llama 3.1 405B, B200": (6, 8, None, None),
                 "vTrain, many nodes": (None, None, 15, None), "vTrain, single node": (None, None, 10, None)}
        seen = set()
        for name in sample(sorted(name for name in os.listdir(published) if name.endswith(".csv")), 4):
            text = self.run_it("plan", "--table", f"{published}/{name}")
            for part in text.split("\n\n"):
                found = re.match(r"(.+), on \w+\n", part)
                if not found:
                    continue
                seen.add(found[1])
                mean, greatest, median, two_rows = marks[found[1]]
                number = re.search(r"errors: mean ([\d.]+) %, median ([\d.]+) %, greatest ([\d.]+) %", part)
                with self.subTest(table=found[1]):
                    for mark, value in ((mean, number[1]), (median, number[2]), (greatest, number[3])):
                        if mark:
                            self.assertLessEqual(float(value), mark)
                    fitted = re.search(r"two rows fitted .*: mean ([\d.]+) %", part)
                    self.assertEqual(bool(fitted), two_rows is not None)
                    if two_rows:
                        self.assertLessEqual(float(fitted[1]), two_rows)
                    self.assertIn("constant tokens/s per GPU", part)
                    self.assertIn("closed form, two constants", part)
        self.assertLessEqual(seen, set(marks))
        if thorough:
            self.assertEqual(seen, set(marks))
        self.assertGreater(len(seen), 2)

    def test_measured_columns_may_be_missing_and_do_not_change_predictions(self):
        lines = read(f"{published}/megascale_table2.csv").splitlines()
        lines = lines if thorough else lines[:3]  # a comment, the columns, one row
        rows = [row.split(",") for row in lines[1:]]
        paths = [self.write("without.csv", "\n".join(",".join(row[:2]) for row in rows) + "\n"),
                 self.write("megascale_table2.csv", "\n".join(lines) + "\n")]
        predicted = [list(csv.DictReader(self.run_it("plan", "--table", table, "--format", "csv").splitlines()))
                     for table in paths]
        self.assertEqual(len(predicted[0]), len(rows) - 1)
        self.assertEqual([row["predicted_s"] for row in predicted[0]], [row["predicted_s"] for row in predicted[1]])
        self.assertEqual({row["measured_s"] for row in predicted[0]}, {""})

    def test_wrong_tables_are_refused(self):
        for text, says in (("gpus,batch\n", ["has no rows"]), ("", ["has no rows"]),
                           ("gpus,bach\n256,768\n", ['wrong.csv:1: "bach"', "batch"]),
                           ("gpus,batch,\n256,768,1\n", ['wrong.csv:1: ""']),
                           ("gpus,batch,step_s\n256,768,0\n", ['step_s is "0"', "positive"]),
                           ("gpus,batch\n256\n", ["wrong.csv:2: 1 cells, 2 columns"]),
                           ("gpus,batch\n256,many\n", ['wrong.csv:2: batch is "many"']),
                           ("gpus,batch\n256,-768\n", ['wrong.csv:2: batch is "-768"']),
                           ("gpus,batch\n256,0\n", ['batch is "0"', "from 1 to 1e+08"]),
                           ("gpus,batch\n256,16.4\n", ['batch is "16.4"']),
                           ("gpus,batch\n1e9,768\n", ['gpus is "1e9"']),
                           ("gpus,batch\n100,768\n", ["do not agree with its layout", "100 ranks"]),
                           ("gpus,sequences,micro_batches\n512,1152,7\n", ["7 micro-batches of 1 on 4 replicas"]),
                           ("gpus,batch,micro_batch,hidden,heads,layers,sequence,t,d,p\n8,16,1,1024,16,12,1024,2,1,1\n",
                            ["8 ranks, t 2, p 1, cp 1, d 1"]),
                           ("batch\n768\n", ["no assumptions are known", "batch"])):
            with self.subTest(text=text):
                self.refused("plan", "--table", self.write("wrong.csv", text), says=says)
        self.refused("plan", "--table", os.path.join(self.folder, "none.csv"), says=["none.csv"])

    def test_wrong_machines_are_refused(self):
        table = ["plan", "--table", f"{published}/megascale_table2.csv", "--machine"]
        self.refused(*table, "selen", says=["no such machine", "selene"])
        self.refused(*table, "v100", says=["V100-SXM2-32GB multiplies bf16", "f16, f32"])
        good = read("experiments/machines/selene.toml")
        for before, after, says in (("bandwidth = 2.039e12", "bandwidth = 0", "accelerator.bandwidth is 0"),
                                    ("link = 230e9", "link = 1e30", "host.link is 1e+30, but must be from 1 to 1e+18")):
            path = self.write("broken.toml", good.replace(before, after))
            line = 1 + good[:good.index(before)].count("\n")
            self.refused(*table, path, says=["the machine file is wrong", f"broken.toml:{line}: ", says])

    def test_a_step_on_a_machine_says_where_its_time_goes(self):
        words = [*gpt3, "--layout", "dp2.tp8.pp8.sp.z1", "--global-batch-size", "32"]
        text = self.run_it(*words, "--train-tokens", "300e9")
        self.assertRegex(text, r"on 128 A100-SXM4-80GB: a step takes [\d.]+ s; [\d.]+ tokens/s for each; "
                               r"MFU [\d.]+ % of 312 TFLOP/s \(bf16\)")
        self.assertRegex(text, r"300 billion tokens take [\d.]+ days, [\d.]+ million GPU-hours, [\d.]+ GWh")
        shares = re.search(r"of a rank's time: (.*)", text)[1]
        self.assertAlmostEqual(sum(float(share) for share in re.findall(r"([\d.]+) %", shares)), 100, delta=0.5)
        self.assertEqual(text, self.run_it(*words, "--train-tokens", "300e9"))  # bit-identical
        picture = os.path.join(self.folder, "step.json")
        self.run_it(*words, "--timeline", picture)
        events = json.loads(read(picture))["traceEvents"]
        self.assertEqual(len(events), 8 * 16 * 2)  # stages × micro-batches × passes
        self.run_it(*words, "--timeline", picture.replace("json", "svg"))
        self.assertTrue(read(picture.replace("json", "svg")).startswith("<svg"))
        self.run_it(*words, "--timeline", picture.replace("json", "txt"))
        self.assertEqual(read(picture.replace("json", "txt")).count("stage "), 8)
        passes, bubble, form = re.search(r"closed form: \((\d+) \+ (\d+)\) passes of .* take ([\d.]+) s", text).groups()
        self.assertEqual((passes, bubble), ("16", "7"))
        self.assertLess(float(form), float(re.search(r"a step takes ([\d.]+) s", text)[1]))

    def test_files_and_updates_beside_the_passes_are_predicted(self):
        disks = read("experiments/machines/selene.toml").replace("link = 2", "file_read = 40e9\nfile_write = 30e9\nlink = 2")
        machine = self.write("disks.toml", disks)
        self.assertIn("file_read", disks)
        words = ["--preset", "gpt2", "--dtype", "bf16", "--layout", "dp8.z3", "--global-batch-size", "64",
                 "--micro-batch-size", "1", "--clip-grad", "0"]
        for places in ("optimizer=host", "optimizer=file", "parameters=file,gradients=file,optimizer=file"):
            seconds = {}
            for update in ("after", "overlapped", "speculative", "delayed"):
                options = ["plan", *words, "--machine", machine, "--place", places, "--update", update]
                seconds[update] = json.loads(self.run_it(*options, "--format", "json"))["step_s"]
            with self.subTest(places=places, seconds=seconds):
                self.assertLess(seconds["overlapped"], seconds["after"])
                if "host" in places:  # publishing reads the master weights once more, which takes long from a file
                    self.assertLess(seconds["delayed"], seconds["after"])
            text = self.run_it(*options)
            self.assertIn("wait: file" if "file" in places else "wait: host", text)
            self.assertIn("predicted below, by disks.toml, not calibrated", text)
        text = self.run_it("train", *words, "--backend", f"simulated:{machine}", "--place", "optimizer=file",
                           "--update", "delayed", "--run-dir", os.path.join(self.folder, "runs"))
        self.assertIn("predicted by disks.toml", text)

    def test_what_a_machine_cannot_predict_is_refused_before_anything_is_printed(self):
        words = [*gpt3, "--global-batch-size", "16"]
        alone = read("experiments/machines/selene.toml").split("[network]")[0]
        for more, says in ((["--layout", "dp16", "--hosts", "8,8"], ["hosts of its own", "8 accelerators"]),
                           (["--layout", "dp8.tp2", "--place", "optimizer=file", "--zero", "1"],
                            ["optimizer=file, but [host] has no file_read, no file_write", "docs/machine_file.md"]),
                           (["--layout", "dp8.tp2", "--dtype", "f32"], ["multiplies f32", "it has bf16"]),
                           (["--layout", "dp8.tp2", "--numerics", "exact"], ["numerics exact"]),
                           (["--layout", "dp8.tp2", "--timeline", "step.png"], [".svg, .txt or .json"]),
                           (["--layout", "dp8.tp2", "--algorithm", "native"], ["native", "--algorithm ring"]),
                           (["--layout", "dp8.tp2", "--machine", self.write("alone.toml", alone)],
                            ["no network between hosts", "16 ranks, 8 accelerators"])):
            with self.subTest(more=more):
                self.refused(*words, *more, says=says)
                self.assertEqual(start([chorale, *words, *more], XDG_CACHE_HOME=self.folder).stdout, "")

    def test_groups_that_lie_unevenly_on_hosts_pay_for_the_network(self):
        slow = self.write("slow.toml", read("experiments/machines/selene.toml").replace("adapter = 22e9", "adapter = 1e6"))
        words = ["plan", "--preset", "gpt2", "--dtype", "bf16", "--num-attention-heads", "12", "--global-batch-size", "4"]
        for layout in ("dp4.tp6", "dp8.tp3"):
            text = self.run_it(*words[:-1], "8", "--layout", layout, "--machine", slow)
            self.assertRegex(text, r"wait: tp \d\d\.\d %")

    def test_the_search_finds_the_fastest_of_what_it_executed_and_says_why_others_lose(self):
        words = ["plan", "--preset", "llama-8b", "--dtype", "bf16", "--machine", "selene", "--ranks", "64", "--search",
                 "--global-batch-size", "256"]
        few = [*words, "--tp", "8"]
        words += [] if thorough else ["--cp", "1"]
        found = json.loads(self.run_it(*words, "--format", "json"))
        rows = found["ways"]
        times = [row["step_s"] for row in rows]
        self.assertEqual(len(rows), found["executed"])
        self.assertGreaterEqual(len(rows), 12)
        self.assertEqual([found[name] for name in ("global_batch_size", "seq_length", "dtype")], [256, 8192, "bf16"])
        self.assertEqual(times, sorted(times))
        self.assertEqual(rows[0]["loses_by"], "")
        self.assertTrue(any(row["loses_by"] for row in rows[1:]))
        for row in rows:
            self.assertAlmostEqual(row["times_the_fastest"], row["step_s"] / times[0], places=6)
            self.assertTrue(0 < row["mfu"] < 1 and row["memory_bytes"] <= found["memory_limit_bytes"])
            self.assertAlmostEqual(row["tokens_per_s"], 256 * 8192 / row["step_s"], delta=1)
            self.assertAlmostEqual(row["memory_share"], row["memory_bytes"] / found["memory_bytes"], places=6)
        best = rows[0]
        one = self.run_it(*words[:7], "--global-batch-size", "256", "--layout", best["layout"], "--micro-batch-size",
                          str(best["micro_batch"]), "--recompute", best["recompute"])
        self.assertAlmostEqual(float(re.search(r"a step takes ([\d.]+) s", one)[1]), times[0], delta=0.06)
        text = self.run_it(*words, "--rows", "0")
        tied = sum(row["times_the_fastest"] <= 1 + found["planner_error"] for row in rows[1:])
        self.assertEqual(len(re.findall(r" ~ 1\.\d", text)), tied)
        self.assertTrue(0 < tied)
        self.assertIn("\n~: within 8 % of the fastest, the planner's error, so it may be as fast\n", text)
        self.assertIn("64 A100-SXM4-80GB: 8030.26 million parameters in bf16, 256 sequences of 8192 tokens per step; "
                      "a rank may use 70.8 GiB of 74.5 GiB\n", text)
        tight = sum(row["memory_share"] > 0.9 for row in rows)
        self.assertEqual(len(re.findall(r"! \d\d\.\d %", text)), tight)
        self.assertEqual("!: needs over 90 % of the memory" in text, tight > 0)
        executed = {}
        for shown in ("3", "24"):
            found = json.loads(self.run_it(*few, "--rows", shown, "--format", "json"))
            executed[shown] = found["executed"]
            self.assertEqual(len(found["ways"]), int(shown))
        self.assertEqual(executed["24"], 24)
        self.assertLess(executed["3"], 24)
        self.assertIn(f"left out: {executed['3'] - 3} more that were executed; --rows 0 shows them\n",
                      self.run_it(*few, "--rows", "3"))
        self.refused(*words, "--memory-limit", "1G", says=["no way to train the model fits"])
        self.refused(*words, "--tp", "16", says=["considers no way that the flags allow"])
        self.refused(*words, "--ranks", "0", says=["search has no effect here", "ranks is 0"])

    def test_the_search_tries_every_schedule_that_can_win_and_any_that_is_named(self):
        words = ["plan", "--preset", "llama-8b", "--dtype", "bf16", "--machine", "selene", "--ranks", "64", "--search",
                 "--global-batch-size", "64", "--tp", "8", "--pp", "4", "--cp", "1", "--zero", "0", "--format", "json"]
        considered = {}
        for schedule in ("auto", "1f1b", "interleaved", "zb-h1", "v-min", "gpipe"):
            found = json.loads(self.run_it(*words, "--schedule", schedule))
            considered[schedule] = found["considered"]
            for row in found["ways"]:
                used = row["layout"].split(".")[-1]
                if schedule == "auto":
                    self.assertNotIn(used, ("gpipe", "naive"))
                elif schedule != "1f1b":
                    self.assertEqual(used, schedule)
        self.assertEqual(considered["auto"],
                         sum(considered[schedule] for schedule in ("1f1b", "interleaved", "zb-h1", "v-min")))
        several = json.loads(self.run_it(*words[:14], *words[16:], "--schedule", "v-min"))  # without --pp
        self.assertTrue(any(row["layout"].endswith(".v-min") for row in several["ways"]))
        self.refused(*words, "--schedule", "v-min", "--num-layers", "12", "--pp", "8",
                     says=["considers no way that the flags allow", "stages times chunks divide the 12 layers"])

    def test_the_search_knows_the_states_of_the_optimizer(self):
        words = ["plan", "--preset", "llama-8b", "--dtype", "bf16", "--machine", "selene", "--ranks", "64", "--search",
                 "--global-batch-size", "64", "--tp", "8", "--pp", "1", "--cp", "1", "--zero", "0", "--format", "json",
                 "--memory-limit", "16G"]
        self.refused(*words, "--optimizer", "adamw", says=["no way to train the model fits"])
        self.assertGreater(len(json.loads(self.run_it(*words, "--optimizer", "sgd"))["ways"]), 0)

    def test_a_closed_form_is_shown_only_for_schedules_that_it_describes(self):
        words = ["plan", "--preset", "llama-8b", "--machine", "selene", "--global-batch-size", "32", "--recompute", "full",
                 "--layout"]
        for schedule, passes in (("1f1b", "16 + 7"), ("v2.interleaved", "16 + 3.5"), ("gpipe", "16 + 7"),
                                 ("naive", "16 + 112"), ("zb-h1", None), ("v-min", None)):
            with self.subTest(schedule=schedule):
                text = self.run_it(*words, f"dp2.tp4.pp8.{schedule}")
                self.assertEqual("closed form" in text, passes is not None)
                if passes:
                    self.assertIn(f"closed form: ({passes}) passes of ", text)

    # The search must answer "Why not FSDP?" even if FSDP is not in the printed list, and even if FSDP does not fit into
    # memory.
    def test_the_search_explains_any_layout(self):
        words = ["plan", "--preset", "llama-8b", "--dtype", "bf16", "--machine", "selene", "--ranks", "64", "--search",
                 "--global-batch-size", "256", "--tp", "8", "--cp", "1"]  # few layouts, so that the search is short
        text = self.run_it(*words, "--explain", "z3")
        self.assertRegex(text, r"\ndp64\.z3, micro-batch \d+, recompute \w+: [\d.]+ s/step, [\d.]+ times the time of\n")
        self.assertRegex(text, r"\na rank needs [\d.]+ GiB of 74\.5 GiB, \d\d %")
        fastest = re.search(r" times the time of\n([^,]+), ", text)[1]
        self.assertIn(" is the fastest way itself: ", self.run_it(*words, "--explain", fastest))
        first, second, more = re.search(r"(?m)^the step +([\d.]+) +([\d.]+) +([+-][\d.]+)$", text).groups()
        self.assertAlmostEqual(float(second) - float(first), float(more), delta=0.02)
        parts = [float(row) for row in re.findall(r"(?m)^(?!the step).+ [\d.e-]+ +[\d.e-]+ +([+-][\d.e-]+)$", text)]
        self.assertAlmostEqual(sum(parts), float(more), delta=0.02)
        # The listed losses and gains must add up exactly to the printed difference.
        amount, verdict, words_of_it = re.search(r"\ndp64\.z3 takes ([\d.]+) s (more|less): it (.*)\n", text).groups()
        self.assertEqual(verdict == "more", float(more) > 0)
        changes = [(-1 if sign == "−" else 1) * float(part) for sign, part in re.findall(r"([+−])([\d.]+)", words_of_it)]
        self.assertTrue(min(changes) < 0 < max(changes), words_of_it)
        self.assertAlmostEqual(sum(changes), float(amount) if verdict == "more" else -float(amount), places=6)
        for sign, sums in ((1, r"loses ([\d.]+) s"), (-1, r"gains ([\d.]+) s")):
            self.assertAlmostEqual(float(re.search(sums, words_of_it)[1]),
                                   sum(abs(change) for change in changes if change * sign > 0), places=6)
        self.assertIn("it does not fit: a rank needs ", self.run_it(*words, "--explain", "dp64"))
        forced = self.run_it("plan", "--preset", "llama-70b", "--machine", "eos", "--ranks", "256", "--search", "--tp", "8",
                             "--pp", "8", "--cp", "1", "--global-batch-size", "512", "--explain", "z3")
        self.assertRegex(forced, r"\ndp256\.z3: recompute full, because selective would need [\d.]+ GiB of 70\.8 GiB.*\n")
        found = json.loads(self.run_it(*words, "--explain", "dp8.tp8,z3", "--format", "json"))
        pair = found["explained"]
        self.assertEqual([row["layout"] for row in pair], ["dp8.tp8", "dp64.z3"])
        self.assertTrue(all(row["products_s"] > 0 and row["step_s"] > 0 for row in pair))
        self.refused(*words, "--explain", "z1,z2,z3", says=["--explain puts two layouts beside each other", "3 are named"])
        self.refused(*words, "--explain", "dp48", says=["48", "64"])
        self.refused(*words, "--explain", "dp1.tp64", says=["tensor", "64"])
        self.refused(*words[:5], "--ranks", "8", "--search", "--explain", "dp8", says=["explain has no effect here"])

    def test_a_machine_s_memory_is_its_own_and_a_greater_limit_is_warned_of(self):
        words = ["plan", "--preset", "llama-8b", "--machine", "eos", "--layout", "dp8.z3"]
        for limit, warns in (("80G", True), ("80GB", False)):
            result = start([chorale, *words, "--memory-limit", limit], XDG_CACHE_HOME=self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual("warning: --memory-limit is 80 GiB, but H100-SXM5-80GB has 74.5 GiB, which is 80 GB\n"
                             in result.stderr, warns, result.stderr)
        too_large = start([chorale, *words[:-1], "dp8"], XDG_CACHE_HOME=self.folder)
        self.assertEqual(too_large.returncode, 3, too_large.stderr)
        self.assertRegex(too_large.stdout, r"\nthe layout does not fit: dp8, .*; H100-SXM5-80GB has 74\.5 GiB\n")
        text = self.run_it(*words)
        self.assertRegex(text, r"\na rank needs [\d.]+ GiB of 74\.5 GiB, \d\d %")
        self.assertNotIn("does not fit", text)
        self.assertIn("in bf16, ", text)  # the file of eos has no f32 products
        self.assertIn("assumed: bf16 (--dtype); rings", text)
        self.assertNotIn("gathers 1 unit ahead", text)
        self.assertNotIn("at most 63", self.run_it(*words[:5], "--layout", "dp128.z3", "--global-batch-size", "128"))

    def test_a_plan_on_a_machine_fits_the_terminal(self):
        words = ["plan", "--preset", "llama-8b", "--machine", "eos", "--ranks", "16", "--global-batch-size", "64"]
        for more in (["--layout", "dp2.tp4.pp2"], ["--search", "--explain", "z3"]):
            text = start([chorale, *words, *more], XDG_CACHE_HOME=self.folder, COLUMNS="80").stdout
            self.assertIn("loses" if "--search" in more else "wait: dp", text)
            self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])

    def test_what_is_copied_to_the_host_takes_time_and_saves_memory(self):
        words = ["plan", "--preset", "gpt2-xl", "--dtype", "bf16", "--layout", "dp8.z3", "--global-batch-size", "32",
                 "--micro-batch-size", "4"]
        seconds = []
        for place in ([], ["--place", "optimizer=host"]):
            text = self.run_it(*words, "--machine", "eos", *place)
            seconds.append(float(re.search(r"a step takes ([\d.]+) ms", text)[1]))
            self.assertEqual("wait: host" in text, bool(place))
        self.assertGreater(seconds[1], seconds[0])
        self.refused(*words, "--machine", "vtrain", "--place", "optimizer=host", says=["no offload", "docs/machine_file.md"])
        found = self.run_it("plan", "--preset", "gpt2-xl", "--dtype", "bf16", "--machine", "eos", "--ranks", "8", "--search",
                            "--global-batch-size", "32", "--place", "optimizer=host,gradients=host")
        self.assertRegex(found, r"dp8\.z[23]")

    def test_the_search_divides_ranks_among_experts_and_hybrid_shards(self):
        text = self.run_it("plan", "--preset", "nano-moe", "--dtype", "bf16", "--ranks", "64", "--machine", "eos",
                           "--search", "--global-batch-size", "512")
        self.assertRegex(text, r"\.ep[248]\b")
        self.assertRegex(text, r"\brep\d+\.")
        if not thorough:
            return
        self.run_it("plan", "--preset", "nano-moe", "--num-experts", "6", "--seq-length", "8192", "--dtype", "bf16",
                    "--machine", "eos", "--ranks", "12", "--search", "--global-batch-size", "24")  # ep of 3 with cp of 2


if __name__ == "__main__":
    unittest.main()
