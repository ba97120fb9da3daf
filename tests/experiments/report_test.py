"""Tests `chorale report`. Covers text summaries, comparisons, and the pages of figures for runs, suites and failures, which
a browser renders."""
import fcntl
import html
import html.parser
import json
import os
import pty
import re
import shutil
import struct
import tempfile
import termios
import unittest
import urllib.parse
import xml.etree.ElementTree

import h5py
import numpy

from programs import chorale, finish, launch, ranks, rest_of, spawn, start, tests_run

# A script that finds overlapping texts, texts outside of their picture, and pages that are wider than the window.
LOOK = """<script>
const found = [];
document.querySelectorAll("details").forEach(d => d.open = true);
for (const svg of document.querySelectorAll("svg.chart, svg.pipeline")) {
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
  boxes.forEach(([a, p], i) => {
    if (p.left < frame.left - 1 || p.right > frame.right + 1 || p.top < frame.top - 1 || p.bottom > frame.bottom + 1)
      found.push(["outside", a]);
    for (const [b, q] of boxes.slice(i + 1)) {
      const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (wide > 1 && high > 3) found.push(["overlap", a, b]);
    }
  });
}
const page = document.documentElement;
if (page.scrollWidth > window.innerWidth) found.push(["wide", page.scrollWidth, window.innerWidth]);
const seen = {found, paper: getComputedStyle(page).backgroundColor, width: window.innerWidth};
parent.document.documentElement.setAttribute("data-found", JSON.stringify(seen));
</script>"""


class Page(html.parser.HTMLParser):
    """A parsed page. Lists unclosed tags, pictures, pictures without a title, pictures that can be saved (by file name), and
    other links."""
    alone = {"meta", "br", "hr", "img", "link"}
    picture = "data:image/svg+xml;charset=utf-8,"

    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.pictures, self.untitled, self.links = [], [], 0, 0, []
        self.text, self.saved = "", {}
        self.feed(text)
        self.wrong += self.open

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if values.get("href", "").startswith(self.picture):
            self.saved[values["download"]] = urllib.parse.unquote(values.pop("href").removeprefix(self.picture))
        self.links += [values[name] for name in ("src", "href", "xlink:href") if name in values]
        if self.open and self.open[-1] == "svg" and tag != "title":
            self.untitled += self.first
        self.first = tag == "svg"
        if tag == "svg":
            self.pictures += 1
            self.untitled += values.get("role") != "img"
        if tag not in self.alone:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data


def train(folder, count, *words):
    words = ["--preset", "tiny", "--threads", "1", "--eval-samples", "4", "--global-batch-size", "8", "--train-iters", "12",
             "--no-save", *words]
    result = ranks(count, chorale, "train", *words, "--run-dir", folder)
    assert result.returncode == 0, result.stderr
    return os.path.realpath(f"{folder}/latest/run.h5")


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.home = holder.name
        cls.runs = [train(f"{cls.home}/{layout}", count, "--layout", layout)
                    for layout, count in (("dp1", 1), ("dp2", 2), ("pp2", 2), ("dp2.z3", 2))]
        cls.launches = f"{cls.home}/launches.h5"
        result = start([chorale, "bench", "all_reduce", "--backend", "shm", "--begin", "1K", "--end", "2K", "-f", "2", "-n",
                        "3", "-w", "1", "--in-place", "no",
                        "--ceiling", "0", "--launches", "6", "--out", cls.launches], MPIRUN=" ".join(launch))
        assert result.returncode == 0, result.stderr
        cls.bench = f"{cls.home}/bench.h5"
        result = ranks(2, chorale, "bench", "all_reduce", "broadcast", "barrier", "--backend", "shm", "--algorithm", "all",
                       "--begin", "1K", "--end", "64K", "-n", "8", "-w", "1", "--in-place", "no", "--out", cls.bench)
        assert result.returncode == 0, result.stderr

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def page(self, *files, most=1_000_000):
        out = f"{self.folder}/out.html"
        result = start([chorale, "report", *files, "--html", out])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, f"{out}\n")
        with open(out, encoding="utf-8") as stream:
            text = stream.read()
        self.assertLess(len(text.encode()), most)
        page = Page(text)
        self.assertEqual(page.wrong, [])
        self.assertEqual(page.untitled, 0)
        self.assertEqual(page.links, [])
        self.assertEqual(len(page.saved), text.count("<figure"))
        for svg in page.saved.values():
            xml.etree.ElementTree.fromstring(svg)
            self.assertNotIn("var(", svg)
        for outside in ("http://", "https://", "src=", "<script", "@import"):
            self.assertNotIn(outside, text)
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertNotRegex(page.text, r"(?i)\bnan\b")
        page.figures = re.findall(r'<section id="([^"]+)">', text)
        page.html = text
        return page

    def rows(self, page, figure):
        """Returns the rows of a figure's table, one dict per row."""
        section = re.search(rf'<section id="{figure}">.*?</section>', page.html, re.S).group()
        table = [[html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
                 for row in re.findall(r"<tr>.*?</tr>", section, re.S)]
        return [dict(zip(table[0], row)) for row in table[1:]]

    def charts(self, page, figure):
        """Returns the versions of a figure's drawings for wide windows."""
        section = re.search(rf'<section id="{figure}">.*?</section>', page.html, re.S).group()
        return re.findall(r'<svg class="roomy chart".*?</svg>', section, re.S)

    def looks(self, chart):
        """Returns the name, and the class and dashes, of each series in the legend of a chart."""
        entries = re.findall(r'<path class="(line s\d"[^>]*?) d="M0 6 H24"/>.*?</g>\n<text[^>]*>(.*?)</text>', chart)
        return [(html.unescape(name), look) for look, name in entries]

    def suite(self, *records):
        folder = f"{self.folder}/suite"
        os.mkdir(folder)
        result = start([tests_run, "[.suite-record]"], TEST_FOLDER=folder, TEST_RECORDS=",".join(records))
        self.assertEqual(result.returncode, 0, result.stdout)
        return f"{folder}/run.h5"

    def changed(self, record, change):
        copy = shutil.copy(record, f"{self.folder}/changed-{len(os.listdir(self.folder))}.h5")
        with h5py.File(copy, "r+") as file:
            change(file)
        return copy

    def again(self, record):
        """Creates the record of a different run with the same values."""
        def change(file):
            file.attrs["run_id"] = numpy.bytes_("another")
        return self.changed(record, change)

    def timed(self, slower=1.0, apart=True, launches=6):
        """Creates a record of launches with medians of about `slower` µs. If `apart` is true, the record has a different
        session."""
        def change(file):
            if apart:
                file.attrs["session"] = numpy.bytes_(f"of its own, {slower} {launches}")  # the attribute has a fixed length
            for number in range(6):
                run = file[f"runs/launch-{number + 1}"]
                run["series/median"][:] = 1e-6 * slower * (1 + 0.01 * (number * 3 % 5))
                if number >= launches:
                    del file[f"runs/launch-{number + 1}"]
        return self.changed(self.launches, change)

    def test_figures_of_several_runs_and_their_findings(self):
        page = self.page(*self.runs)
        self.assertLessEqual({"layouts", "loss", "step-time", "pipeline", "scaling", "memory", "traffic"}, set(page.figures))
        for said in ("4 runs of chorale train", "has the highest median",
                     "Too few runs to tell whether they differ (?): 1 of each; 6 repetitions in turns are needed",
                     "The greatest difference from dp1 at any step is", "Under pp2 the last step took",
                     "The fullest rank needs", "dp2.z3"):
            self.assertIn(said, page.text)
        self.assertRegex(page.text, r"Left out for lack of data: .*bandwidth")

    def test_the_figure_of_a_pipeline_knows_its_placement(self):
        page = self.page(train(f"{self.home}/v-min", 2, "--layout", "pp2.v-min", "--train-iters", "2"))
        self.assertIn("pipeline", page.figures)
        self.assertRegex(page.text, "Under .*v-min.* the last step took")

    def test_commands_can_be_typed_again(self):
        page = self.page(*self.runs[:2])
        self.assertIn(f"{chorale} train --preset tiny", page.text)
        self.assertEqual(page.text.count(f"mpirun -n 2 {chorale} train --preset tiny"), 1)  # only dp2 has two ranks

    def test_figures_of_a_benchmark(self):
        page = self.page(self.bench)
        self.assertEqual(page.figures, ["winners", "bandwidth", "pairs"])
        self.assertRegex(page.text, r"has the lowest median in \d of 4 cells, the most of any|"
                                    r"have the lowest median in \d of 4 cells each")
        for said in ("Too few runs to tell whether the winners differ from the others (?): 1 of each",
                     "all_reduce: latency", "memory ceiling", "cost model of", "all_reduce reaches"):
            self.assertIn(said, page.text)

    def bench_of(self, *words):
        out = f"{self.folder}/bench-{len(os.listdir(self.folder))}.h5"
        result = start([chorale, "bench", "all_reduce", "--backend", "threads", "--algorithm", "ring,direct", "-b", "1K",
                        *([] if "--end" in words else ["-e", "1K"]), "-n", "3", "-w", "1", "--ceiling", "no", *words,
                        "--out", out])
        self.assertEqual(result.returncode, 0, result.stderr)
        return out

    def test_only_rows_of_one_cell_compete(self):
        dtypes = ["--dtype", "f32,bf16"]
        records = [self.bench_of("--ranks", "2", *dtypes), self.bench_of("--ranks", "4", *dtypes),
                   self.bench_of("--ranks", "4", "--hosts", "2,2", *dtypes)]
        questions = {f"all_reduce of {dtype}, {place}" for dtype in ("f32", "bf16") for place in
                     (f"{ranks}, {form}" + pretended for form in ("out of place", "in place") for ranks, pretended in
                      (("2 ranks, 1 host", ""), ("4 ranks, 1 host", ""), ("4 ranks, 2 hosts", ", pretended 2,2")))}
        page = self.page(*records)
        rows = self.rows(page, "winners")
        self.assertEqual({row["operation"] for row in rows}, questions)
        self.assertEqual(len(rows), len(questions))
        for row in rows:
            self.assertEqual({row["fastest"], row["next"]}, {"threads ring", "threads direct"})
        said = start([chorale, "report", self.suite(*records)]).stdout
        for question in questions:
            self.assertEqual(said.count(f"\n{question} "), 1, said)
        self.assertEqual({row["operation"] for row in self.rows(page, "bandwidth")}, questions)

    def test_benchmarks_that_differ_in_any_setting_are_series_of_their_own(self):
        records = [self.bench_of("--in-place", "no"), self.bench_of("--in-place", "no", "--compare-calls", "no")]
        names = {f"threads {algorithm}, compare-calls {value}" for algorithm in ("ring", "direct")
                 for value in ("yes", "no")}
        suite = self.suite(*records)
        for files in (records, [suite]):
            page = self.page(*files)
            self.assertEqual({row["series"] for row in self.rows(page, "bandwidth")}, names)
            self.assertEqual(len(self.rows(page, "winners")), 1)
        compared = start([chorale, "report", suite, self.again(suite), "--compare"])
        for value in ("yes", "no"):
            self.assertEqual(compared.stdout.count(f", compare-calls {value}: latency"), 2, compared.stdout)
        both = start([chorale, "report", records[0], records[1], "--compare"]).stdout  # compares the two settings
        self.assertIn("\nall_reduce threads ring f32 1 KiB, 2 ranks: latency ", both)

    def test_a_size_that_two_benchmarks_measured_is_one_row(self):
        records = [self.bench_of("--in-place", "no"), self.bench_of("--in-place", "no", "--end", "2K")]
        rows = self.rows(self.page(self.suite(*records)), "bandwidth")
        self.assertEqual(sorted((row["series"], row["bytes"]) for row in rows),
                         [(f"threads {name}", size) for name in ("direct", "ring") for size in ("1024", "2048")])

    def test_strong_and_weak_lines_have_bases_of_their_own(self):
        def paced(speed):
            def change(file):
                file["train/tokens_per_s"][:] = speed
            return change
        smaller = train(f"{self.home}/half-batch", 1, "--layout", "dp1", "--global-batch-size", "4")
        records = [self.changed(record, paced(speed)) for record, speed in
                   ((self.runs[0], 100), (self.runs[1], 150), (smaller, 80))]
        for files in (records, records[::-1]):
            rows = self.rows(self.page(*files), "scaling")
            columns = ("scaling", "strategy", "ranks", "speed-up or efficiency")
            self.assertEqual([tuple(row[column] for column in columns) for row in rows],
                             [("Strong scaling", "dp", "1", "1"), ("Strong scaling", "dp", "2", "1.5"),
                              ("Weak scaling", "dp", "1", "1"), ("Weak scaling", "dp", "2", "0.938")])

    def test_a_suite_is_as_its_runs(self):
        page = self.page(self.suite(*self.runs))
        self.assertEqual(page.figures, self.page(*self.runs).figures)
        self.assertIn("4 runs of chorale train", page.text)

    def test_the_text_of_a_suite_is_a_summary_of_one_screen(self):
        def change(file):
            file.require_group("config").create_dataset("question", data="Which layout?", dtype=h5py.string_dtype())
        suite = self.changed(self.suite(*self.runs), change)
        report = [chorale, "report", suite]
        wide = start(report)
        self.assertEqual(wide.returncode, 0, wide.stderr)
        for said in ("\nWhich layout?\n", "  compared    4 configurations of train, 1 repetition\n",
                     "tokens/s  95 % interval of its steps' median  relative to the fastest", "has the highest median",
                     "- Loss: All curves", f"all tables: {chorale} report {suite} --all\n"):
            self.assertIn(said, wide.stdout)
        for layout in ("dp1", "dp2", "pp2", "dp2.z3"):
            self.assertRegex(wide.stdout, rf"(?m)^{layout} +1 +[\d.]+ +[\d.]+ to [\d.]+ ")
        narrow = start(report, COLUMNS="80").stdout.replace(" \\\n", "\n")  # joins commands that continue on the next line
        paths = (suite, "all tables:", "figures:")
        self.assertEqual([line for line in narrow.splitlines() if len(line) > 80 and not line.startswith(paths)], [])
        self.assertGreater(max(map(len, wide.stdout.splitlines())), 100)
        self.assertLess(len(narrow.splitlines()), 60)
        self.assertEqual(narrow.split("\n- ")[0].count("\nlayout"), 3, narrow)  # the table continues below with the
                                                                                # columns that do not fit
        self.assertEqual(sorted(set(narrow.split())), sorted(set(wide.stdout.split())))
        everything = start([*report, "--all"]).stdout
        self.assertGreater(len(everything.splitlines()), 10 * len(wide.stdout.splitlines()))
        for group in ("/runs/run-0/train", "/runs/run-3/phases"):
            self.assertRegex(everything, rf"(?m)^{group} ")
            self.assertNotIn(group, wide.stdout)
            self.assertIn(group, start([*report, "--group", group]).stdout)
        self.assertEqual(start([*report, "--rows", "10"]).stdout, everything)
        both = start([*report, self.bench]).stdout
        self.assertTrue(both.startswith(wide.stdout))
        self.assertIn(f"\n{self.bench}\n", both)

    def test_the_summary_names_runs_without_a_result(self):
        def change(file):
            for name, texts in (("id", ["dp4-r1", "tp4-r1", "pp4-r1"]), ("status", ["ok", "too little memory", "waiting"])):
                file.require_group("summary").create_dataset(name, data=texts, dtype=h5py.string_dtype())
        said = start([chorale, "report", self.changed(self.suite(self.runs[0]), change)]).stdout
        self.assertIn("\n  tp4-r1: too little memory\n1 of 3 runs has not run\n", said)
        self.assertNotIn("dp4-r1", said)

    def test_tables_fit_the_terminal(self):
        mine, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 72, 0, 0))
        process = spawn([chorale, "report", self.bench, "--group", "series"], stdout=theirs,
                        env={k: v for k, v in os.environ.items() if k != "COLUMNS"})
        os.close(theirs)
        seen = rest_of(mine).decode().splitlines()
        finish(process)
        self.assertEqual([line for line in seen if len(line) > 72], [])
        piped = start([chorale, "report", self.bench, "--group", "series"], COLUMNS="").stdout.splitlines()
        self.assertGreater(max(map(len, piped)), 150)  # programs that read a pipe may search for complete lines
        self.assertEqual(sorted(set(" ".join(seen).split())), sorted(set(" ".join(piped).split())))

    def test_repetitions_are_one_row_and_fifty_runs_one_page(self):
        page = self.page(self.suite(*(self.runs * 13)[:50]))
        self.assertIn("50 runs of chorale train", page.text)
        self.assertRegex(page.text, r"dp2\.z3\s*12")

    def test_many_different_runs_stay_readable(self):
        def renumbered(number):  # different seeds would count as repetitions
            def change(file):
                toml = re.sub(r"(?m)^eval-samples = \d+", f"eval-samples = {number}", file["config/toml"][()].decode())
                del file["config/toml"]
                file["config"].create_dataset("toml", data=toml, dtype=h5py.string_dtype())
                file["train/loss"][:] += number  # equal curves would be drawn as one
            return change
        page = self.page(self.suite(*(self.changed(self.runs[n % 4], renumbered(n)) for n in range(30))),
                         most=1_500_000)
        self.assertIn("22 of the 30 curves are gray", page.text)

    def test_colors_follow_groups_of_identical_curves(self):
        def numbered(number):
            def change(file):
                toml = re.sub(r"(?m)^eval-samples = \d+", f"eval-samples = {number}", file["config/toml"][()].decode())
                del file["config/toml"]
                file["config"].create_dataset("toml", data=toml, dtype=h5py.string_dtype())
                file["train/loss"][:] = number // 2  # two runs have the same losses
            return change
        page = self.page(*(self.changed(self.runs[0], numbered(n)) for n in range(10)))
        self.assertNotIn("gray", page.text)
        [chart, *_] = self.charts(page, "loss")
        self.assertEqual([name for name, _ in self.looks(chart)],
                         [f"dp1, eval-samples {n}, identical: dp1, eval-samples {n + 1}" for n in range(0, 10, 2)])
        self.assertEqual(len({look for _, look in self.looks(chart)}), 5)

    def test_a_series_has_one_look_in_all_charts_of_a_benchmark(self):
        page = self.page(self.bench)
        seen = {}
        for chart in self.charts(page, "bandwidth"):
            for name, look in self.looks(chart):
                seen.setdefault(name, set()).add(look.split('"')[0])
        [winners] = self.charts(page, "winners")
        for fill, name in re.findall(r'<rect class="bar (s\d)"[^>]*width="24"[^>]*/></g>\n<text[^>]*>\w+ (.*?)</text>',
                                     winners):
            seen.setdefault(name, set()).add(f"line {fill}")
        self.assertGreater(len(seen), 4)
        self.assertEqual({name: looks for name, looks in seen.items() if len(looks) > 1}, {})
        self.assertEqual(len(set.union(*seen.values())), min(len(seen), 8))

    def test_bars_have_the_order_of_the_table(self):
        def paced(speed):
            def change(file):
                file["train/tokens_per_s"][:] = speed
                file["train/step_time"][:] = 1 / speed
            return change
        page = self.page(*(self.changed(run, paced(speed)) for run, speed in zip(self.runs, (20, 40, 10, 30))))
        order = ["dp2", "dp2.z3", "dp1", "pp2"]
        self.assertEqual([re.sub(r"^[?~] ", "", row["layout"]) for row in self.rows(page, "layouts")], order)
        for figure in ("layouts", "step-time", "memory"):
            names = re.findall(r'<text [^>]*>(?:[?~] )?(dp1|dp2|dp2\.z3|pp2)</text>', self.charts(page, figure)[0])
            self.assertEqual(names, order, figure)
        self.assertNotRegex(page.html, r"Time of a step of dp1\b")  # for one rank, the overview already shows this bar

    def test_bars_of_nothing_are_left_out(self):
        def small(file):
            file["traffic/bytes_measured"][:], file["traffic/bytes_predicted"][:] = 0, 0
            file["traffic/bytes_measured"][:, 0, 0], file["traffic/bytes_predicted"][:, 0, 0] = 1 << 20, 1 << 20
            file["traffic/bytes_measured"][:, 1, 0], file["traffic/bytes_predicted"][:, 1, 0] = 8, 8
        page = self.page(self.changed(self.runs[1], small))
        self.assertEqual(len(self.rows(page, "traffic")), 2)
        self.assertIn("1 more axis is in the table, with too few bytes for a bar", page.text)
        [chart] = self.charts(page, "traffic")
        self.assertEqual(len(re.findall(r"<text [^>]*>dp2: ", chart)), 1)

    def test_speed_against_memory_names_the_pareto_front(self):
        def measured(speed, peak):
            def change(file):
                file["train/tokens_per_s"][:], file["train/peak_bytes"][:] = speed, peak
            return change
        runs = [self.changed(run, measured(speed, peak << 20)) for run, speed, peak in
                zip(self.runs, (40, 30, 20, 10), (40, 20, 30, 10))]
        page = self.page(*runs)
        self.assertIn("On the Pareto front of speed and memory: dp2.z3; dp2 and dp1.", page.text)
        chart = self.charts(page, "layouts")[1]
        self.assertIn("<title>pp2, memory/rank 30 MiB: 20</title>", chart)
        self.assertIn('class="beside">dp2.z3</text>', chart)
        page = self.page(*(self.changed(run, measured(40 - 10 * i, (10 + i) << 20)) for i, run in enumerate(self.runs)))
        self.assertIn("dp1 also needs the least memory.", page.text)

    def test_a_page_of_one_run_compares_nothing(self):
        page = self.page(self.runs[1])
        [row] = self.rows(page, "layouts")
        self.assertNotIn("relative to the fastest", row)
        self.assertEqual(self.charts(page, "layouts"), [])
        self.assertNotIn("largest difference", page.text)
        self.assertIn("In this run no rank waits for another.", self.page(self.runs[0]).text)
        self.assertIn("relative to the fastest", self.rows(self.page(*self.runs[:2]), "layouts")[0])

    def test_curves_of_training_by_step_tokens_and_time(self):
        def known(file):
            for name, value in (("grad_norm", 2), ("lr", 0.25), ("step_time", 3), ("mfu", 0.5)):
                file[f"train/{name}"][:] = value
            file["train/grad_norm"][4] = 9
            file["train/tokens"][:], file["train/time"][:] = 64, numpy.arange(1, 13) * 3
            file["train/loss"][:], file["eval/loss"][:], file["loss_floor"][...] = numpy.linspace(6, 5, 12), 5.5, 4.75
        page = self.page(self.changed(self.runs[0], known))
        self.assertIn("The greatest gradient norm is 9, at step 5.", page.text)
        titles = "".join(self.charts(page, "course"))
        for said in ("step 5: 9", "step 2: 0.25", "step 2: 3 s", "step 2: 50 %"):
            self.assertIn(f"<title>dp1, {said}</title>", titles)
        by_step, by_tokens, by_time = self.charts(page, "loss")
        for chart, said in ((by_step, "step 1"), (by_tokens, "tokens 64"), (by_time, "time 3 s")):
            self.assertIn(f"<title>dp1, {said}: 6</title>", chart)
            self.assertIn(">entropy floor: 4.75</text>", chart)
            self.assertIn(">held-out loss</text>", chart)
        self.assertIn("<title>held-out loss of dp1, step 12: 5.5</title>", by_step)
        self.assertEqual(self.rows(page, "loss")[0]["entropy floor"], "4.75")

        def deep(file):
            known(file)
            file["loss_floor"][...] = 0.5
        self.assertIn(">entropy floor: 0.5, below this plot</text>", self.page(self.changed(self.runs[0], deep)).html)

        # The legend has one entry for both seeds and their repetitions. The greatest gradient norm is that of a single step,
        # not a median.
        def of_seed(seed, floor, spike):
            def change(file):
                known(file)
                toml = re.sub(r"(?m)^seed = .*", f"seed = {seed}", file["config/toml"][()].decode())
                del file["config/toml"]
                file["config"].create_dataset("toml", data=toml, dtype=h5py.string_dtype())
                file["loss_floor"][...], file["train/grad_norm"][7] = floor, spike
                file.attrs["run_id"] = numpy.bytes_(f"seed-{seed}-{spike}")
            return self.changed(self.runs[0], change)
        page = self.page(of_seed(1, 4.75, 3), of_seed(1, 4.75, 5), of_seed(1, 4.75, 77), of_seed(2, 4.75 + 1e-9, 4))
        self.assertEqual(len(re.findall(r">entropy floor[^<]*</text>", self.charts(page, "loss")[0])), 1)
        self.assertIn("The greatest gradient norm is 77, at step 8 (run seed-1-77).", page.text)
        page = self.page(of_seed(1, 4.7, 3), of_seed(2, 4.8, 4))
        self.assertEqual(self.charts(page, "loss")[0].count(">entropy floors: 4.7 to 4.8</text>"), 1)

    def test_a_disturbed_measurement_says_so_wherever_it_is_shown(self):
        def disturb(file):
            for ranks in [file["ranks"]] if "ranks" in file else [run["ranks"] for run in file["runs"].values()]:
                ranks["cores"][:], ranks["others"][:], ranks["load"][:], ranks["stolen"][:] = 4, 1.5, 2.5, 0
        def calm(file):
            disturb(file)
            for ranks in [file["ranks"]] if "ranks" in file else [run["ranks"] for run in file["runs"].values()]:
                ranks["others"][:] = 0.1
        said = (r"\S+ was busy: other programs use 1\.5 of its 4 cores \(load 2\.5\); times vary more than on a quiet "
                r"machine")
        for record in (self.runs[0], self.bench, self.launches):
            report = " ".join(start([chorale, "report", self.changed(record, disturb)]).stdout.split())
            self.assertRegex(report, " disturbed " + said)
            self.assertEqual(len(re.findall(said, self.page(self.changed(record, disturb)).text)), 1)
            quiet = self.changed(record, calm)
            self.assertNotIn("busy", start([chorale, "report", quiet]).stdout + self.page(quiet).text)

    def test_programs_get_numbers_and_rows_bound_all_that_is_printed(self):
        [document] = json.loads(start([chorale, "report", self.runs[1], "--format", "json"]).stdout)
        attributes = document["attributes"]
        self.assertEqual((attributes["jobsize"], attributes["train_iters"], attributes["status"]), (2, 12, "ok"))
        self.assertIsInstance(attributes["heartbeat"], float)
        self.assertIsInstance(attributes["git_commit"], str)
        few = start([chorale, "report", self.runs[1], "--rows", "4"]).stdout
        self.assertRegex(few, r"(?m)^toml:\n(  .*\n){4}  … and \d+ lines more$")
        self.assertGreater(len(start([chorale, "report", self.runs[1], "--group", "config"]).stdout.splitlines()), 100)

    def test_a_record_has_the_floor_of_its_language(self):
        with h5py.File(self.runs[0]) as file:
            floor, toml = float(file["loss_floor"][()]), file["config/toml"][()].decode()
        value = {key: re.search(rf"(?m)^{key} = (\d+)", toml).group(1) for key in ("vocab-size", "seq-length", "seed")}
        said = start([chorale, "data", "floor", "--vocabulary", value["vocab-size"], "--sequence", value["seq-length"],
                      "--seed", value["seed"]]).stdout
        self.assertIn(f"  {floor:.6f}  ", said)

    def test_predicted_times_stand_below_the_measured(self):
        def predicted(seconds):
            def change(file):
                file["train/step_time"][:] = 0.5
                group = file.require_group("forecast")
                for name in ("step_time", "compute_time"):
                    group.create_dataset(name, data=[seconds, seconds])
            return change
        page = self.page(self.changed(self.runs[1], predicted(0.55)), self.changed(self.runs[3], predicted(1)))
        self.assertEqual({row["run"]: (row["measured"], row["predicted"], row["predicted / measured"])
                          for row in self.rows(page, "prediction")},
                         {"dp2": ("500 ms", "550 ms", "1.10"), "dp2.z3": ("500 ms", "1 s", "2.00")})
        self.assertIn("1 of 2 predictions are within 15 % of the measured time of a step; the furthest is 2.00 times as "
                      "long, for dp2.z3.", page.text)
        [chart] = self.charts(page, "prediction")
        self.assertEqual(chart.count('class="bar outlined s0"'), 2)

    def test_figures_as_files(self):
        folder = f"{self.folder}/new/figures"
        result = start([chorale, "report", *self.runs, "--svg", folder])
        self.assertEqual(result.returncode, 0, result.stderr)
        files = result.stdout.splitlines()
        self.assertEqual(sorted(files), sorted(f"{folder}/{name}" for name in os.listdir(folder)))
        page = self.page(*self.runs)
        self.assertEqual([os.path.basename(file) for file in files], list(page.saved))
        for file in files:
            root = xml.etree.ElementTree.parse(file).getroot()
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            self.assertGreater(float(root.get("height")), 50)
            with open(file, encoding="utf-8") as stream:
                self.assertNotIn("var(", stream.read())

    def test_one_run_beside_its_record(self):
        result = start([chorale, "report", self.runs[0], "--html"])
        self.assertEqual(result.returncode, 0, result.stderr)
        beside = os.path.join(os.path.dirname(self.runs[0]), "report.html")
        self.assertEqual(result.stdout, f"{beside}\n")
        with open(beside, encoding="utf-8") as stream:
            self.assertIn("A run of chorale train: dp1", stream.read())

    def test_a_run_that_was_killed_and_one_that_had_not_begun(self):
        def kill(file):
            file.attrs["status"] = numpy.bytes_("running")  # the attribute has a fixed length
        def kill_at_once(file):
            kill(file)
            for group in ("train", "phases", "memory", "eval", "pipeline"):
                if group in file:
                    file[group].attrs["committed_rows"] = 0
            for group in ("memory", "traffic"):
                if group in file:
                    del file[group]
        page = self.page(self.changed(self.runs[2], kill))
        self.assertIn("is marked running", page.text)
        self.assertIn("layouts", page.figures)
        page = self.page(self.changed(self.runs[1], kill_at_once))
        self.assertEqual(page.figures, [])
        self.assertIn("There is nothing to draw", page.text)

    def test_a_run_that_was_not_evaluated_has_no_held_out_loss(self):
        def stop_before_evaluation(file):
            file["eval"].attrs["committed_rows"] = 0
        for record, evaluated in ((self.runs[0], True), (self.changed(self.runs[0], stop_before_evaluation), False)):
            page = self.page(record)
            for figure in ("loss", "layouts"):
                [row] = self.rows(page, figure)
                self.assertEqual(row["held-out loss"] != "-", evaluated, row)
            self.assertRegex(self.rows(page, "loss")[0]["last loss"], r"^\d")

    def repeated(self, record, slower, run_id="again"):
        """Creates a repetition of a run. All times in the repetition are longer by `factor`."""
        def change(file):
            file.attrs["run_id"] = numpy.bytes_(run_id)
            for name in ("train/step_time", "phases/phase_time", "pipeline/t_start", "pipeline/t_end"):
                if name in file:
                    file[name][:] = file[name][:] * slower
            file["train/tokens_per_s"][:] = file["train/tokens_per_s"][:] / slower
        return self.changed(record, change)

    def test_figures_show_the_median_over_repetitions_and_its_spread(self):
        def plain(file):
            file["train/step_time"][:] = 0.5
            file["train/tokens_per_s"][:] = 1000
            file["train/comm_share"][:], file["train/bubble_share"][:] = 0.1, 0.2
            file["phases/phase_time"][:] = 0
            file["phases/phase_time"][:, :, 0] = 0.4  # phase 0 is the forward pass
        first = self.changed(self.runs[2], plain)
        later, most = self.repeated(first, 3, "second"), self.repeated(first, 10, "third")
        for files, median, forward, spread in (
                ([first], "500 ms", "400 ms", "500 ms to 500 ms"), ([first, later], "1 s", "800 ms", "500 ms to 1.5 s"),
                ([most, first, later], "1.5 s", "1.2 s", "500 ms to 5 s")):
            page = self.page(*files)
            for row in self.rows(page, "step-time"):
                self.assertEqual((row["runs"], row["step"], row["forward"]), (f"{len(files)}", median, forward))
                self.assertIn(spread, row.values())
            self.assertEqual(page.html.count(f"<title>rank 0: {spread}</title>") > 0, len(files) > 1)  # the whisker
            self.assertIn("10 % of its step for messages and 20 % for other stages", page.text)
            self.assertEqual(self.rows(page, "layouts")[0]["bubble"], "20 %")  # as in the text
            [row] = self.rows(page, "pipeline")
            self.assertEqual(row["runs"], f"{len(files)}")
        alone, three = (self.rows(self.page(*files), "pipeline")[0] for files in ([later], [most, first, later]))
        self.assertEqual(three["measured"], alone["measured"])
        self.assertIn("the last step of the median of 3 runs, second", self.page(most, first, later).text)

    def test_memory_is_the_same_number_in_the_table_and_in_the_chart(self):
        def fuller(file):
            file.attrs["run_id"] = numpy.bytes_("fuller")
            file["train/peak_bytes"][:] += 1 << 20
            file["memory/at_peak"][:, 0, 0] += 1 << 20
            file["memory/at_peak"][:, 1, 0] += 1 << 20
        for files in ([self.runs[1]], [self.runs[1], self.changed(self.runs[1], fuller)]):
            page = self.page(*files)
            [row] = self.rows(page, "layouts")
            with h5py.File(files[-1]) as file:
                self.assertEqual(file["memory/at_peak"][-1].sum(axis=1).max(), file["train/peak_bytes"][-1])
            ranks_ = [row["held at the peak"] for row in self.rows(page, "memory") if row["category"] == "all"]
            self.assertIn(row["memory/rank"], ranks_)
            self.assertIn(f"The fullest rank of dp2 needs {row['memory/rank']}", page.text)
            section = re.search(r'<section id="memory">.*?</section>', page.html, re.S).group()
            self.assertIn(f">{row['memory/rank']}</text>", section)  # the label of a bar
            self.assertNotIn("older versions", page.text)

    def test_an_older_record_says_that_its_bars_are_longer(self):
        def age(file):
            for name in ("at_peak", "planned_at_peak"):
                del file["memory"][name]
        page = self.page(self.changed(self.runs[1], age))
        self.assertIn("Records of older versions have only each category's own peak", page.text)

    def test_equal_losses_are_called_identical_and_others_are_drawn_as_differences(self):
        def losses(of):
            def change(file):
                file["train/loss"][:] = of
            return change
        with h5py.File(self.runs[0]) as file:
            same = file["train/loss"][:]
        ended = numpy.where(numpy.arange(len(same)) == 3, same + 1e-6, same)
        dp2, z3 = self.changed(self.runs[1], losses(same)), self.changed(self.runs[3], losses(same))
        page = self.page(self.runs[0], dp2, z3)
        self.assertIn("the losses are identical to those of dp1, bit for bit", page.text)
        self.assertIn(">dp1, identical: dp2, dp2.z3</text>", page.html)
        self.assertNotIn("Difference from", page.text)
        self.assertEqual([row["largest difference from dp1"] for row in self.rows(page, "loss")],
                         ["-", "identical", "identical"])
        page = self.page(self.runs[0], dp2, self.changed(self.runs[3], losses(ended)))
        self.assertIn("The greatest difference from dp1 at any step is 1e-06: dp2.z3 at step 4.", page.text)
        self.assertIn("Difference from dp1", page.text)
        self.assertIn(">dp1, identical: dp2</text>", page.html)
        self.assertIn("<title>dp2.z3, step 4: 1e-06</title>", page.html)
        self.assertEqual([row["largest difference from dp1"] for row in self.rows(page, "loss")],
                         ["-", "identical", "1e-06"])
        again = self.changed(dp2, lambda file: (file.attrs.modify("run_id", numpy.bytes_("b")), losses(ended)(file)))
        page = self.page(self.runs[0], dp2, again)  # only one of two repetitions differs
        self.assertEqual(self.rows(page, "loss")[1]["largest difference from dp1"], "1e-06")

    def test_pipelines_have_a_time_axis_and_one_scale(self):
        def other(file):
            toml = re.sub(r"(?m)^eval-samples = \d+", "eval-samples = 7", file["config/toml"][()].decode())
            del file["config/toml"]
            file["config"].create_dataset("toml", data=toml, dtype=h5py.string_dtype())
        slow = self.repeated(self.changed(self.runs[2], other), 4)
        page = self.page(self.runs[2], slow)
        self.assertIn("All pictures have the same time scale.", page.text)
        pictures = re.findall(r'<svg class="(roomy|narrow) pipeline".*?</svg>', page.html, re.S)
        self.assertEqual(pictures, ["roomy", "narrow"] * 2)
        for kind in ("roomy", "narrow"):
            lanes, axes = [], []
            for picture in re.findall(rf'<svg class="{kind} pipeline".*?</svg>', page.html, re.S):
                self.assertRegex(picture, r">[\d.]+ (s|ms|µs)</text>")
                lanes.append(float(re.search(r'class="lane" x="\d+" y="\d+" width="([\d.]+)"', picture).group(1)))
                axes.append(re.findall(r'<text class="label quiet".*?>(.*?)</text>', picture))
            self.assertAlmostEqual(lanes[1] / lanes[0], 4, delta=0.05)
            self.assertEqual(axes[0], axes[1])

    def test_values_appear_under_the_pointer(self):
        page = self.page(*self.runs)
        with h5py.File(self.runs[0]) as file:
            loss = file["train/loss"][0]
        self.assertIn(f"<title>dp1, step 1: {loss:.5g}</title>", page.html)
        self.assertRegex(page.html, r"<title>rank 1, backward: [\d.]+ (s|ms|µs|ns)</title>")
        self.assertRegex(page.html, r"<title>stage 1, forward 0: [\d.e-]+ to [\d.e-]+ s</title>")
        self.assertRegex(page.html, r"<title>rank 1, grads: [\d.]+ [KM]iB</title>")
        bench = self.page(self.bench)
        interval = r"\([\d.]+ \S+ to [\d.]+ \S+\)"
        self.assertRegex(bench.html, rf"<title>shm \S+, vector size 1 KiB: [\d.]+ (s|ms|µs|ns) {interval}</title>")
        self.assertRegex(bench.html, r"<title>all_reduce, 1 KiB: shm \S+, [\d.]+ (s|ms|µs|ns)</title>")

    def test_a_file_counts_once_whatever_its_names(self):
        os.symlink(os.path.dirname(self.runs[0]), f"{self.folder}/latest")
        link = f"{self.folder}/latest/run.h5"
        page = self.page(self.runs[0], link, self.runs[0])
        self.assertEqual([row["runs"] for row in self.rows(page, "layouts")], ["1"])
        result = start([chorale, "report", self.runs[0], link, "--format", "json"])
        self.assertEqual(len(json.loads(result.stdout)), 1)
        self.assertEqual(result.stderr, f"left out: {link}, the same file as {self.runs[0]}\n")
        self.assert_the_same_launches("the same file as", [self.runs[0]], [link])
        compared = start([chorale, "report", self.runs[0], self.runs[1], "--compare"])
        self.assertEqual(compared.returncode, 0, compared.stderr)
        self.assertNotIn("the same", compared.stdout + compared.stderr)
        copy = shutil.copy(self.runs[0], f"{self.folder}/copy.h5")
        result = start([chorale, "report", self.runs[0], self.runs[1], copy, "--format", "json"])
        self.assertEqual(len(json.loads(result.stdout)), 2)
        self.assertEqual(result.stderr, f"left out: {copy}, a copy of {self.runs[0]}\n")
        self.assert_the_same_launches("a copy of", [self.runs[0]], [copy])
        self.assert_the_same_launches("the same records as", [copy, self.runs[1]], [self.runs[1], self.runs[0]])
        self.assert_the_same_launches("the same file as", [self.launches], [self.launches])

    def assert_the_same_launches(self, how, one, other):
        """Checks that the program refuses to compare these records, because the comparison could never find a difference."""
        comparisons = [["report", *other, "--check", ",".join(one)]]
        if len(one) == 1:
            comparisons.append(["report", *one, *other, "--compare"])
        for words in comparisons:
            refused = start([chorale, *words])
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), refused.stderr)
            self.assertIn("error: these are the same launches, so there is nothing to compare\n"
                          f"  A is {how} B\n  A: {' '.join(one)}\n  B: {' '.join(other)}\n", refused.stderr)

    def test_a_proof_is_no_training_run_and_changes_no_label(self):
        result = start([chorale, "prove", "--layouts", "dp1", "--steps", "1", "--run-dir", f"{self.folder}/proofs"])
        self.assertEqual(result.returncode, 0, result.stderr)
        page = self.page(self.runs[0], f"{self.folder}/proofs/latest/run.h5")
        self.assertIn("A run of chorale prove, a run of chorale train", page.text)
        self.assertEqual([row["layout"] for row in self.rows(page, "layouts")], ["dp1"])

    def test_one_launch_of_each_tells_nothing(self):
        def slow(file):
            file["train/step_time"][:] = file["train/step_time"][:] * 10
            file["train/tokens_per_s"][:] = file["train/tokens_per_s"][:] / 10
        for one, other in ((self.runs[1], self.again(self.runs[1])), (self.runs[1], self.changed(self.runs[1], slow)),
                           (self.bench, self.again(self.bench)), (self.timed(launches=5), self.timed(3, launches=5))):
            result = start([chorale, "report", one, other, "--compare"])
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("too few runs to tell", result.stdout)
            for word in ("~", "slower", "faster", "significant"):
                self.assertNotIn(word, result.stdout)
            checked = start([chorale, "report", other, "--check", one])
            self.assertEqual(checked.returncode, 2, checked.stderr)
            self.assertIn("error: too few runs to tell whether a speed fell", checked.stderr)

    def test_a_record_of_launches_is_no_slower_than_its_like(self):
        like = self.again(self.launches)
        for other, how in ((like, "6 pairs"), (self.timed(apart=False), "6 pairs"), (self.timed(), "6 and 6")):
            result = start([chorale, "report", other, "--check", self.launches])
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(how, result.stdout)
            self.assertIn("no speed fell by more than 5 %", result.stderr)
        rows = json.loads(start([chorale, "report", self.launches, like, "--compare", "--format", "json"]).stdout)
        self.assertEqual({(row["B / A"], row["low"], row["high"], row["p"], row["verdict"]) for row in rows},
                         {(1, 1, 1, 1, "~")})
        for row in rows:
            self.assertEqual((row["unit"], row["launches of A"], row["launches of B"], row["paired"]), ("s", 6, 6, "yes"))
            self.assertTrue(0 < row["A"] == row["B"] < 1, row)  # seconds per call

    def test_a_check_does_not_exclude_what_its_intervals_include(self):
        def noisy(file):
            for number in range(6):
                file[f"runs/launch-{number + 1}/series/median"][:] *= 2 if number % 2 else 0.5
        result = start([chorale, "report", self.changed(self.launches, noisy), "--check", self.launches])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"no speed fell by more than 5 % and more than chance; (\d) of \1 may have fallen "
                                        r"by more, at worst by 54\.92 % \(95 % interval\): more launches may tell\n")

    def test_a_slower_record_fails_the_check_past_the_threshold(self):
        before = self.timed()
        for apart, test in ((True, "Welch's t-test"), (False, "paired t-test")):
            slower = self.timed(1.2, apart=apart)
            reference = before if apart else self.timed(apart=False)
            result = start([chorale, "report", slower, "--check", reference, "--threshold", "5%"])
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn(test, result.stdout)
            self.assertIn("slower: all_reduce shm auto f32 1 KiB, 2 ranks: latency, by 20.0 %", result.stderr)
            self.assertEqual(start([chorale, "report", slower, "--check", reference, "--threshold", "25%"]).returncode, 0)
            self.assertEqual(start([chorale, "report", reference, "--check", slower]).returncode, 0)

    def test_several_records_of_one_launch_each_are_launches(self):
        def launch_of(number, slower=1.0):
            def change(file):
                file.attrs["run_id"] = numpy.bytes_(f"{number} {slower}")
                file["train/step_time"][:] = 0.1 * slower * (1 + 0.01 * (number * 3 % 5))
                file["train/tokens_per_s"][:] = 1000 / file["train/step_time"][:]
            return self.changed(self.runs[1], change)
        before, after = [launch_of(number) for number in range(6)], [launch_of(number, 1.5) for number in range(6)]
        result = start([chorale, "report", *after, "--check", ",".join(before)])
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("slower: step_time, by 50.0 %", result.stderr)
        self.assertIn("slower: tokens_per_s, by 33.3 %", result.stderr)
        like = [launch_of(number, 1.001) for number in range(6)]
        self.assertEqual(start([chorale, "report", *like, "--check", ",".join(before)]).returncode, 0)

    def test_a_comparison_says_first_what_differs(self):
        for one, other, differs in ((self.runs[0], self.runs[1], [("layout", "dp1", "dp2"), ("ranks", "1", "2")]),
                                    (self.runs[1],
                                     self.changed(self.runs[1],
                                                  lambda file: file.attrs.modify("machine", numpy.bytes_("an abacus"))),
                                     [("machine", "", "an abacus")]),
                                    (self.runs[1], self.changed(self.runs[1], self.larger), [("num-layers", "", "9")])):
            result = start([chorale, "report", one, other, "--compare"])
            self.assertEqual(result.returncode, 0, result.stderr)
            said, table = result.stdout.split("\n\n", 1)
            self.assertIn("metric", table)
            self.assertIn(f"A: {one}\nB: {other}\nwhat differs", said)
            for words in differs:
                self.assertRegex(said, "(?m)^" + ".*".join(map(re.escape, words)))
        alike = start([chorale, "report", self.runs[1], self.again(self.runs[1]), "--compare"])
        self.assertNotIn("what differs", alike.stdout)
        machine = start([chorale, "report", self.runs[0], self.runs[1], "--compare", "--format", "json"])
        json.loads(machine.stdout)
        self.assertIn("what differs", machine.stderr)

    @staticmethod
    def larger(file):
        toml = re.sub(r"(?m)^num-layers = \d+", "num-layers = 9", file["config/toml"][()].decode())
        del file["config/toml"]
        file["config"].create_dataset("toml", data=toml, dtype=h5py.string_dtype())

    def test_a_check_says_which_speeds_are_no_longer_there(self):
        def lose(file):
            for number in range(6):
                file[f"runs/launch-{number + 1}/series/bytes"][1] = 7
        result = start([chorale, "report", self.changed(self.launches, lose), "--check", self.launches])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"not compared: all_reduce shm auto f32 2 KiB, 2 ranks: latency, which only {self.launches} has",
                      result.stderr)
        self.assertIn("no speed fell by more than 5 %\n", result.stderr)

    def test_large_speeds_are_whole_numbers(self):
        def fast(file):
            file["train/tokens_per_s"][:] = 23456
        page = self.page(self.changed(self.runs[1], fast))
        self.assertIn("dp2 trains 23456 tokens/s (95 % interval of its steps' median 23456 to 23456)", page.text)
        self.assertNotIn("e+04", page.text)

    def test_a_small_share_is_not_none(self):
        def slow(file):
            file["train/mfu"][:] = 0.0004
        [row] = self.rows(self.page(self.changed(self.runs[1], slow)), "layouts")
        self.assertEqual(row["MFU"], "0.04 %")

    def test_few_steps_have_no_interval(self):
        out = f"{self.folder}/few.html"
        self.assertEqual(start([chorale, "report", self.runs[1], "--warm-up", "7", "--html", out]).returncode, 0)
        with open(out, encoding="utf-8") as page:
            self.assertRegex(page.read(), r"dp2 trains \S+ tokens/s \(range of its steps ")

    def test_the_heading_says_what_the_interval_is(self):
        def later(file):
            file.attrs["run_id"] = numpy.bytes_("later")
        again = self.changed(self.runs[0], later)
        steps, runs = "95 % interval of its steps' median", "range of the runs"
        for files, heading in (([self.runs[0]], steps), ([self.runs[0], again], runs),
                               ([self.runs[0], again, self.runs[1]], f"{steps} or {runs}")):
            self.assertIn(heading, self.rows(self.page(*files), "layouts")[0])
        self.assertIn("95 % interval of its calls' median", self.rows(self.page(self.bench), "bandwidth")[0])
        self.assertIn("95 % interval of the runs", self.rows(self.page(self.launches), "bandwidth")[0])

    def test_refusals(self):
        for words, says in (([self.bench, "--compare"], "--compare needs two records"),
                            ([self.bench, self.runs[0], "--compare"], "no metric in common"),
                            ([self.bench, self.runs[0], "--compare"],
                             "training runs are compared by layout, unless each side"),
                            ([self.again(self.runs[0]), "--check", self.runs[0]], "give 6 records of each: report new-1.h5"),
                            ([self.bench, "--check", self.bench, "--threshold", "five"], "invalid threshold"),
                            ([self.bench, "--check", self.bench, "--threshold", "5"], "invalid threshold"),
                            ([self.bench, "--check", self.bench, "--threshold", "inf%"], "invalid threshold"),
                            ([self.bench, "--html", f"{self.folder}/no/out.html"], "cannot write the page"),
                            ([self.bench, "--html", "--check", self.bench], "exclude one another"),
                            ([self.bench, "--svg", self.folder, "--check", self.bench], "exclude one another"),
                            ([self.bench, "--svg", "README.md/figures"], "the folder cannot be written"),
                            (["README.md", "--html"], "not an HDF5 file")):
            result = start([chorale, "report", *words])
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(says, result.stderr)

    def test_no_texts_overlap_in_a_browser(self):
        browser = shutil.which("chromium")
        if not browser:
            self.skipTest("chromium is not installed")
        for files in (self.runs, [self.bench]):
            self.page(*files)
            with open(f"{self.folder}/out.html", encoding="utf-8") as stream:
                text = stream.read()
            for width, scheme, paper in ((1280, 1, "rgb(255, 255, 255)"), (420, 0, "rgb(18, 22, 28)")):
                with self.subTest(files=files, width=width):
                    with open(f"{self.folder}/look.html", "w",
                              encoding="utf-8") as stream:  # windows are at least 500 pixels wide, frames can be narrower
                        stream.write(f'<iframe width="{width}" height="900" style="border: 0" '
                                     f'srcdoc="{html.escape(text.replace("</body>", LOOK + "</body>"))}"></iframe>')
                    dom = start([browser, "--headless", "--no-sandbox", "--disable-gpu",
                                 f"--blink-settings=preferredColorScheme={scheme}",
                                 f"--user-data-dir={self.folder}/browser", "--window-size=1400,1000", "--dump-dom",
                                 f"file://{self.folder}/look.html"]).stdout
                    seen = json.loads(html.unescape(re.search(r'data-found="([^"]*)"', dom).group(1)))
                    self.assertEqual(seen["found"], [])
                    self.assertEqual((seen["width"], seen["paper"]), (width, paper))


if __name__ == "__main__":
    unittest.main()
