"""Tests how `chorale report` shows the record of a launch: its events in the summary, on the page, and as marks on curves.
The record is that of a real launch; the tests add events to it."""
import html
import os
import re
import shutil
import tempfile
import unittest
import xml.etree.ElementTree

import h5py
import numpy

from programs import chorale, launch, ranks, start
from report_test import Page

program = os.path.abspath(chorale)
steps = 12
model = ["--preset", "tiny", "--numerics", "exact", "--threads", "1", "--global-batch-size", "8", "--eval-samples", "4",
         "--train-iters", str(steps)]
seconds = {"detect_s": 4.0, "end_s": 1.0, "choose_s": 0.5, "start_s": 2.0, "load_s": 0.25, "first_step_s": 3.0}
arrow = "→"


def died(step, t, rank=3, **more):
    return {"kind": "died", "step": step, "t": t, "rank": rank, "host": "n1", "why": f"rank {rank} on n1 was killed",
            "from_layout": "dp2.tp2.z1", "to_layout": "dp3.z1", "source": "disk", **seconds, **more}


def resized(step, t, **more):
    return {"kind": "resized", "step": step, "t": t, "why": "the ranks saved and ended", "from_layout": "dp3.z1",
            "to_layout": "dp2.tp2.z1", "source": "disk", **seconds, "detect_s": numpy.nan, **more}


class ReportOfLaunch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.home = holder.name
        made = start([chorale, "launch", "--ranks", "2", "--run-dir", f"{cls.home}/launch", "--",
                      "train", *model, "--layout", "dp2"], MPIRUN=" ".join(launch))
        assert made.returncode == 0, made.stderr
        made = ranks(2, chorale, "train", *model, "--layout", "dp2", "--no-save", "--run-dir", f"{cls.home}/plain")
        assert made.returncode == 0, made.stderr
        cls.record, cls.plain = (f"{cls.home}/{name}/latest/run.h5" for name in ("launch", "plain"))

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def record_with(self, *events, change=None, first="dp2.tp2.z1", last="complete"):
        """Copies the record, and inserts events between its first and its last event. `last`: the kind of the last event."""
        folder = f"{self.folder}/{len(os.listdir(self.folder))}"
        os.mkdir(folder)
        copy = shutil.copy(self.record, f"{folder}/run.h5")
        with h5py.File(copy, "r+") as file:
            table = file["events"]
            codes = {name: numpy.bytes_(table[name].attrs["flag_meanings"]).decode().split() for name in ("kind", "source")}
            self.assertEqual(table.attrs["committed_rows"], 2)  # started, complete
            for name, column in table.items():
                before = column[:2]
                column.resize(len(events) + 2, 0)
                column[-1] = before[1]
                for row, event in enumerate(events, 1):
                    missing = "none" if name == "source" else "" if column.dtype.kind == "O" else -1 if name == "rank" else 0
                    value = row if name == "event" else event.get(name, missing)
                    column[row] = codes[name].index(value) if name in codes else value
            table["event"][-1], table["t"][-1] = len(events) + 1, 100
            table["to_layout"][0], table["kind"][-1] = first, codes["kind"].index(last)
            table.attrs["committed_rows"] = len(events) + 2
            if events:
                file["layout"][()] = first
            if change:
                change(file)
        return copy

    def summary(self, record):
        result = start([program, "report", record])
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertLessEqual(len(lines), 40, result.stdout)
        self.assertEqual([line for line in lines if len(line) > 80 and "/" not in line], [])
        self.assertNotRegex(result.stdout, r"(?i)\bnan\b|, ,|-nan")
        return result.stdout

    def page(self, *records):
        out = f"{self.folder}/out.html"
        result = start([chorale, "report", *records, "--html", out])
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(out, encoding="utf-8") as stream:
            text = stream.read()
        page = Page(text)
        self.assertEqual((page.wrong, page.untitled, page.links), ([], 0, []))
        for svg in page.saved.values():
            xml.etree.ElementTree.fromstring(svg)
            self.assertNotIn("var(", svg)
        self.assertNotRegex(page.text, r"(?i)\bnan\b")
        page.html = text
        return page

    @staticmethod
    def section(page, figure):
        found = re.search(rf'<section id="{figure}">.*?</section>', page.html, re.S)
        return found.group() if found else ""

    def charts(self, page, figure, kind="roomy"):
        return re.findall(rf'<svg class="{kind} chart".*?</svg>', self.section(page, figure), re.S)

    def rows(self, page):
        table = [[html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
                 for row in re.findall(r"<tr>.*?</tr>", self.section(page, "events"), re.S)]
        return [dict(zip(table[0], row)) for row in table[1:]]

    @staticmethod
    def tooltips(chart):
        """Returns the texts of the tooltips on the marks of events, with their x."""
        found = re.findall(r'<circle class="hover" cx="(\d+)" cy="26" r="7"><title>(.*?)</title>', chart)
        return [(float(x), html.unescape(words)) for x, words in found]

    # ── the summary ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_the_summary_of_a_launch_without_restarts(self):
        said = self.summary(self.record)
        self.assertRegex(said, r"(?m)^  layout +dp2 on 2 ranks$")
        self.assertRegex(said, r"(?m)^  model +8 layers of width 96, f32, 8 sequences of 24 tokens a step$")
        self.assertRegex(said, r"(?m)^  memory +[\d.]+ MiB on the fullest rank$")
        for absent in ("bytes sent", "predicted", "restarts", "recovery", "over all layouts"):
            self.assertNotIn(absent, said)
        folder = os.path.dirname(self.record)
        self.assertIn(f"each start: {program} report {folder}/*-train-*\n", re.sub(r" \\\n +", " ", said))
        records = [name for name in os.listdir(folder) if "-train-" in name and name != "latest"]
        self.assertEqual(len(records), 1)
        self.assertIn("predicted", self.summary(f"{folder}/{records[0]}/run.h5"))
        self.assertNotIn("each start", self.summary(self.record_with()))  # this copy has no starts beside it

    def test_the_summary_lists_the_events(self):
        record = self.record_with(died(4, 10.0, lost_steps=2), resized(7, 30.0),
                                  {"kind": "host_gone", "step": 9, "t": 50, "host": "n2", "from_layout": "dp2.tp2.z1",
                                   "to_layout": "dp2.tp2.z1", **seconds, "first_step_s": numpy.nan})
        said = self.summary(record)
        table = re.search(r"(?ms)^time +step.*?\n\n", said).group().splitlines()
        self.assertEqual(table[0].split(), "time step event layout lost steps recovery".split())
        self.assertRegex(table[1], r"^0 s +0  started +dp2\.tp2\.z1 +-  [\d.]+ m?s$")
        self.assertEqual([re.split(" {2,}", line) for line in table[2:6]],
                         [["10.0 s", "4", "died: rank 3", f"dp2.tp2.z1 {arrow} dp3.z1", "2", "4.5 s"],
                          ["30.0 s", "7", "resized", f"dp3.z1 {arrow} dp2.tp2.z1", "0", "4.5 s"],
                          ["50.0 s", "9", "host gone: n2", "dp2.tp2.z1", "0", "-"],
                          ["1 min 40 s", "12", "complete", "dp2", "-", "-"]])
        plain = re.sub(r"\n {14}", " ", said)
        self.assertIn("  layout      dp2.tp2.z1 on 2 ranks, dp3.z1 after step 4, dp2.tp2.z1 after step 7\n", plain)
        self.assertIn("  restarts    3 (1 died, 1 host gone, 1 resized); 2 steps were done again; "
                      "59.0 s of 1 min 40 s passed without a new step\n", plain)
        self.assertIn(", over all layouts\n", plain)

    def test_the_summary_of_many_events_fits_on_a_screen(self):
        events = [event for n in range(40)
                  for event in (died(n // 4, 2.0 * n + 1, rank=n % 4), resized(n // 4, 2.0 * n + 2))]
        said = self.summary(self.record_with(*events))
        self.assertRegex(said, r"\n… and \d\d earlier events\n")
        self.assertIn("complete", said)
        self.assertRegex(said, rf"(?m)^  12 +\d\.\d{{4}} ")
        self.assertIn(", 80 changes, dp2.tp2.z1 after step 9", re.sub(r"\n {14}", " ", said))
        wide = {"from_layout": "dp2.tp2.pp2.cp2.z1.sp.rr", "to_layout": "dp1.tp2.pp2.cp2.z1.sp.rr"}
        self.assertIn("recovery", self.summary(self.record_with(*[died(n, n + 1.0, **wide) for n in range(11)])))

    def test_steps_that_were_done_twice_are_shown_once(self):
        def twice(file):  # steps 1 to 6 are followed by steps 4 to 9
            table = file["train"]
            for name, column in table.items():
                column[6:] = column[3:9] if name in ("step", "tokens") else column[6:]
            table["loss"][:6] = 9.5

        said = self.summary(self.record_with(died(6, 10.0, lost_steps=3), change=twice))
        shown = [int(step) for step in re.findall(r"(?m)^ +(\d+) +\d\.\d{4} ", said)]
        self.assertEqual(shown, sorted(set(shown)))
        self.assertEqual([loss for step, loss in re.findall(r"(?m)^ +([4-9]) +(\d\.\d{4}) ", said) if loss == "9.5000"], [])

    def test_a_launch_that_gave_up_says_why(self):
        def failed(file):
            file.attrs["status"] = numpy.bytes_("failed")
            file["events/why"][-1] = "--max-restarts is 0"

        said = self.summary(self.record_with(died(4, 10.0, to_layout="", choose_s=numpy.nan, first_step_s=numpy.nan),
                                             change=failed, last="gave_up"))
        self.assertRegex(said, r"run\.h5\nfailed: the launch gave up: --max-restarts is 0\n  rank 3 on n1 was killed\n")
        self.assertRegex(said, r"(?m)^  restarts +none$")
        self.assertRegex(said, r"(?m)^10\.0 s +4  died: rank 3  dp2\.tp2\.z1 +0  -$")

    # ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_the_page_of_a_launch_without_restarts(self):
        page = self.page(self.record)
        self.assertEqual(self.section(page, "events"), "")
        self.assertIn("events (needs a run that a launch has started again)", page.text)
        self.assertNotIn("started the run again", page.text)
        self.assertIn("A run of chorale launch: dp2", page.text)
        self.assertIn(f"{chorale} launch --ranks 2", page.text)
        self.assertNotIn("mpirun", page.text)

    def test_the_figure_of_the_events(self):
        page = self.page(self.record_with(died(4, 10.0, lost_steps=2), resized(7, 30.0),
                                          died(9, 50.0, to_layout="", **{name: numpy.nan for name in seconds})))
        self.assertIn(f"dp2.tp2.z1 {arrow} dp3.z1 {arrow} dp2.tp2.z1", page.text)
        rows = self.rows(page)
        self.assertEqual([row["event"] for row in rows], ["started", "died: rank 3", "resized", "died: rank 3", "complete"])
        self.assertEqual(rows[1], {
            "time": "10.0 s", "step": "4", "event": "died: rank 3", "layout": f"dp2.tp2.z1 {arrow} dp3.z1",
            "lost steps": "2", "recovery": "4.5 s", "detect": "4 s", "end": "1 s", "choose": "500 ms", "start": "2 s",
            "load, in start": "250 ms", "first step": "1 s", "host": "n1", "state from": "disk",
            "reason": "rank 3 on n1 was killed"})
        self.assertEqual((rows[3]["recovery"], rows[3]["layout"]), ("-", "dp2.tp2.z1"))
        section = self.section(page, "events")
        self.assertLess(section.index("<table"), section.index("<svg"))  # the table comes first
        self.assertIn("Restarts: 2 (1 died, 1 resized). 2 steps were done again. From the verdicts to the next new steps, "
                      "9.0 s of 1 min 40 s passed (9 %).", page.text)
        for kind in ("roomy", "narrow"):
            bars = re.findall(r'<rect class="bar.*?<title>(.*?)</title>', self.charts(page, "events", kind)[0])
            self.assertEqual(bars, [f"step {step}, {part}" for step, part in
                                    [("4, died: rank 3", "detect: 4 s"), ("4, died: rank 3", "end: 1 s"),
                                     ("4, died: rank 3", "choose: 500 ms"), ("4, died: rank 3", "start: 2 s"),
                                     ("4, died: rank 3", "first step: 1 s"), ("7, resized", "end: 1 s"),
                                     ("7, resized", "choose: 500 ms"), ("7, resized", "start: 2 s"),
                                     ("7, resized", "first step: 1 s")]])

    def test_curves_have_a_mark_at_each_interruption(self):
        def timed(file):
            file["train/time"][:], file["train/tokens"][:] = 8 * numpy.arange(1, steps + 1), 100

        page = self.page(self.record_with(died(4, 33.0), resized(9, 73.0), change=timed))
        died_words, resized_words = (f"died: rank 3, dp2.tp2.z1 {arrow} dp3.z1", f"resized, dp3.z1 {arrow} dp2.tp2.z1")
        for kind in ("roomy", "narrow"):
            by_step, by_tokens, by_time = self.charts(page, "loss", kind)
            for chart, places in ((by_step, ("step 4", "step 9")), (by_tokens, ("tokens 400", "tokens 900")),
                                  (by_time, ("time 33 s", "time 73 s"))):
                marks = self.tooltips(chart)
                self.assertEqual([words for _, words in marks],
                                 [f"{died_words}, {places[0]}", f"{resized_words}, {places[1]}"])
                self.assertIn(">the launch started the run again</text>", chart)
                self.assertEqual(chart.count('<path class="event"'), 3)  # two marks, and a sample in the legend
            at = {int(step): float(x) for x, step in
                  re.findall(r'cx="(\d+)" cy="\d+" r="7"><title>[^<]*, step (\d+): ', by_step)}
            for x, words in self.tooltips(by_step):  # above the curve's own points
                self.assertAlmostEqual(x, at[int(words.split()[-1])], delta=1)
        drawn = {title: chart for title, chart in zip(("norm", "lr", "time", "mfu"), self.charts(page, "course"))}
        self.assertEqual({title: len(self.tooltips(chart)) for title, chart in drawn.items()},
                         {"norm": 0, "lr": 0, "time": 2, "mfu": 2})

    def test_tokens_of_steps_that_were_done_twice_count_once(self):
        def twice(file):
            file["train/step"][:], file["train/tokens"][:] = [1, 2, 3, 4, 5, 6, 4, 5, 6, 7, 8, 9], 100

        by_tokens = self.charts(self.page(self.record_with(died(6, 33.0, lost_steps=3), change=twice)), "loss")[1]
        self.assertEqual(re.findall(r"[^>]*, tokens (\d+): ", by_tokens)[-1], "900")
        self.assertIn(", tokens 600", self.tooltips(by_tokens)[0][1])

    def test_many_events_remain_readable(self):
        events = [event for n in range(100) for event in (died(n // 10, n + 0.3, rank=n % 4), resized(n // 10, n + 0.6))]
        page = self.page(self.record_with(*events))
        self.assertEqual(len(self.rows(page)), 202)
        by_step, _, by_time = self.charts(page, "loss")
        for chart in (by_step, by_time):
            places = sorted(x for x, _ in self.tooltips(chart))
            self.assertTrue(all(b - a >= 9 for a, b in zip(places, places[1:])), places)
            self.assertEqual(sum(int(words.split()[0]) for _, words in self.tooltips(chart)), 200)  # "20 events, step 3: …"
        self.assertIn("and 16 more", self.tooltips(by_step)[0][1])
        lengths = [float(down) - float(top) for top, down in re.findall(r'class="event" d="M[\d.]+ (\d+)V(\d+)"', by_time)]
        self.assertGreater(len(lengths), 12)
        self.assertLess(max(lengths), 20)  # short marks do not cover the curve
        bars = self.charts(page, "events")[0]
        self.assertLessEqual(len(set(re.findall(r'y="([\d.]+)" width', bars))), 24)
        self.assertIn("Time of the 24 longest of 200 restarts", page.text)

    def test_a_launch_beside_an_undisturbed_run(self):
        record = self.record_with(died(4, 10.0, from_layout="dp2", to_layout="dp1"), first="dp2")
        page = self.page(self.plain, record)
        self.assertIn(f"dp2, identical: dp2 {arrow} dp1", html.unescape(self.charts(page, "loss")[0]))
        self.assertIn("identical to those of dp2, bit for bit", page.text)
        self.assertIn(f"died: rank 3, dp2 {arrow} dp1, run dp2 {arrow} dp1, step 4",
                      [words for _, words in self.tooltips(self.charts(page, "loss")[0])])
        both = self.page(self.plain, self.record)  # without a change of layout, the label is the layout
        self.assertIn("A run of chorale launch, a run of chorale train", both.text)
        self.assertEqual(len(re.findall(r'<path class="line', self.charts(both, "loss")[0])), 2)  # one, and the legend's

    def test_only_a_launch_on_one_layout_has_a_speed_on_its_ranks(self):
        def on_one_rank(file):
            file.attrs["jobsize"], file["layout"][()] = 1, "dp1"

        alone = self.record_with(change=on_one_rank, first="dp1")
        changed = self.record_with(died(4, 10.0, from_layout="dp2", to_layout="dp1"), first="dp2")
        self.assertNotEqual(self.section(self.page(alone, self.record), "scaling"), "")
        self.assertEqual(self.section(self.page(alone, changed), "scaling"), "")


if __name__ == "__main__":
    unittest.main()
