"""Tests the program `chorale` as a user sees it: its help, data on stdout, errors of three lines, and exit codes."""
import csv
import io
import json
import os
import pty
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from programs import chorale, finish, launch, ranks, rest_of, spawn, start, thorough


class CommandLine(unittest.TestCase):
    def refused(self, *words, says, ranked=0, **environment):
        """Expects three lines on stderr, nothing on stdout and exit code 2."""
        command = [chorale, *words]
        result = ranks(ranked, *command, **environment) if ranked else start(command, **environment)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        lines = result.stderr.splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith("error: "))
        self.assertTrue(all(line.startswith("  ") for line in lines[first + 1:first + 3]), result.stderr)
        self.assertEqual(result.stderr.count("error: "), 1, "printed once, whatever the number of ranks")
        if not ranked:
            self.assertEqual(len(result.stderr.splitlines()), 3, result.stderr)
        for part in says:
            self.assertIn(part, result.stderr)

    def test_what_cannot_be_is_refused_in_three_lines(self):
        self.refused(says=["no command given", f"{chorale} --help"])
        self.refused("inof", says=["unknown command", 'did you mean "info"?'])
        self.refused("info", "--fromat", "json", says=["unknown flag --fromat", "did you mean --format?"])
        self.refused("info", "--format", "xml", says=["text, json"])
        self.refused("info", "extra", says=['"extra" was not expected'])
        self.refused("report", "no.h5", says=["no.h5: no such file"])
        self.refused("report", "README.md", says=["not an HDF5 file"])
        self.refused("info", says=["CHORALE_FROMAT"], CHORALE_FROMAT="json")
        self.refused("info", "--config", "no.toml", says=["no.toml: no such file"])
        self.refused("info", "--run-dir", "/proc/none", says=["/proc/none"])
        self.refused("info", "--run-dir", "README.md", says=["README.md"])

    def test_impossible_experts_are_refused_before_mpi_starts(self):
        def refused(*words, says):
            self.refused("train", "--preset", "tiny-moe", *words, says=says)
        refused("--layout", "dp3.ep3", says=["num-experts 4 is not a multiple of expert 3", "try dp3"])
        refused("--layout", "dp2.ep4", says=["data 2 is not a multiple of expert 4", "try dp2"])
        refused("--num-experts", "0", "--layout", "dp2.ep2", says=["only a model with experts", "num-experts 0, expert 2"])
        refused("--moe-router-topk", "5", says=["it chooses 5 of 4 experts", "--moe-router-topk a value from 1"])
        refused("--moe-expert-capacity-factor", "0", says=["capacity-factor = 0 (command line)", ", or dropless"])
        refused("--moe-expert-capacity-factor", "-1", says=["capacity-factor = -1 (command line)", ", or dropless"])
        refused("--moe-expert-capacity-factor", "all", says=["takes a number, or dropless"])
        refused("--routing", "zip", says=["learned, balanced, uniform, zipf, one"])
        self.refused("train", "--preset", "tiny", "--layout", "dp2.ep2", says=["only a model with experts"])
        self.refused("train", "--preset", "tiny", "--routing", "zipf", says=["num-experts is 0"])

    def test_an_error_is_printed_once_for_all_ranks(self):
        self.refused("info", "--format", "xml", says=["text, json"], ranked=4)
        self.refused("info", "--run-dir", "/proc/none", says=["/proc/none"], ranked=4)
        self.refused("train", "--preset", "tiny", "--layout", "dp3", says=["3 ranks; there are 4", "try dp4, dp2.tp2"],
                     ranked=4)

    def test_a_rank_with_other_settings_is_refused(self):
        ranked = [*launch, "-n", "1", chorale, "info", ":", "-n", "2", chorale, "info", "--log-level", "debug"]
        result = start(ranked)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
        self.assertIn("error: ranks differ in log-level\n", result.stderr)
        self.assertIn('log-level = "debug" (command line) on rank 1', result.stderr)
        self.assertIn('log-level = "info" on rank 0', result.stderr)
        other = start([*launch, "-n", "1", chorale, "info", ":", "-n", "1", chorale, "bench"])
        self.assertEqual(other.returncode, 2, other.stderr)
        self.assertIn("ranks differ in command", other.stderr)
        variable = start([*launch, "-n", "2", "env", "CHORALE_FORMAT=json", chorale, "info", ":", "-n", "1", chorale,
                          "info"])
        self.assertIn('format = "text" (default) on rank 2', variable.stderr)

    def test_an_unknown_key_in_a_file_is_named_with_its_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("# mine\nformt = 'json'\n")
            file.flush()
            self.refused("info", "--config", file.name, says=[f"{file.name}:2", 'did you mean "format"?'])

    def test_every_help_opens_with_an_example_that_works(self):
        overview = start([chorale, "--help"])
        self.assertEqual(overview.returncode, 0)
        self.assertTrue(overview.stdout.startswith("example: make run "), overview.stdout)
        names = re.findall(r"(?m)^  (\w+) ", overview.stdout)
        self.assertEqual(sorted(names), ["bench", "compare", "completion", "data", "explain", "export", "generate", "info",
                                         "keep", "kernels", "launch", "man", "plan", "prove", "report", "resize", "show",
                                         "train", "tune", "verify", "watch"])
        with tempfile.TemporaryDirectory() as folder:
            run = start([chorale, "train", "--preset", "tiny", "--train-iters", "2", "--run-dir", f"{folder}/runs"])
            self.assertEqual(run.returncode, 0, run.stderr)
            os.mkdir(f"{folder}/runs/latest/flight")
            with open(f"{folder}/runs/latest/flight/n0.json", "w", encoding="ascii") as flight:  # for the example of explain
                json.dump({"host": "n0", "lost": "error: lost\n", "ranks": [
                    {"rank": 0, "size": 1, "pid": 1, "host": "n0", "doing": "step 1", "folder": "", "saved": "", "beats": 0,
                     "waits": 0, "state": "S", "end": "", "calls": [], "groups": [], "awaited": 0}]}, flight)
            os.symlink(os.path.abspath("experiments"), f"{folder}/experiments")
            # The examples in the help use the run `latest`. For explain, which comes first, `latest` is the run made above.
            # For all other commands except kernels and compare, which come last, `latest` must be a run with a model.
            for name in sorted(names, key=lambda name: (name == "compare", name == "kernels", name != "explain")):
                label, example = start([chorale, name, "--help"]).stdout.splitlines()[0].split(": ", 1)
                self.assertEqual(label, "example")
                if name in ("compare", "verify") and not thorough:  # compare_test.py and a test below cover these two
                    continue
                if name in ("keep", "resize"):  # they need a launch that runs; launch_test.py covers them
                    continue
                words = example.replace("build/chorale", os.path.abspath(chorale)).split()
                words = [*launch, *words[1:]] if words[0] == "mpirun" else words
                result = start(words, folder=folder)
                self.assertEqual(result.returncode, 0, f"{example}\n{result.stderr}")

    def test_help_explains_the_command_that_it_names(self):
        self.assertEqual(start([chorale, "help"]).stdout, start([chorale, "--help"]).stdout)
        for command in ("train", "bench"):
            self.assertEqual(start([chorale, "help", command]).stdout, start([chorale, command, "--help"]).stdout)
        self.assertIn("\nchorale train: ", start([chorale, "help", "train"]).stdout)
        self.refused("help", "trian", says=['unknown command "trian"', 'did you mean "train"?'])
        self.refused("help", "nonsense", says=['unknown command "nonsense"', "the commands are bench, "])
        self.refused("help", "train", "plan", says=["help explains one command"])

    def test_progress_is_not_shown_without_the_log(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        table = f"{folder.name}/ptdp_table2.csv"
        with open("experiments/published/ptdp_table2.csv") as whole, open(table, "w") as part:
            part.writelines(whole.readlines()[:3])  # a comment, the columns, one row
        call = ["bench", "all_reduce", "--algorithm", "ring", "-b", "8", "-e", "8"]
        for words, what in ((["verify", "all_reduce", "ring", "--ranks", "8"], "verify"),
                            ([*call, "--backend", "threads", "-n", "1", "-w", "1", "--ceiling", "no"], "bench threads"),
                            ([*call, "--backend", "simulated:selene"], "bench simulated:selene"),
                            (["plan", "--preset", "gpt2", "--dtype", "bf16", "--ranks", "8", "--machine", "eos", "--search"],
                             "search"),
                            (["plan", "--table", table], "PTD-P, table 2, PTD-P")):
            for more, shows in ([], True), (["--log-level", "off"], False):
                mine, theirs = pty.openpty()
                process = spawn([chorale, *words, *more], stdout=subprocess.DEVNULL, stderr=theirs,
                                env={**os.environ, "TERM": "xterm"})
                os.close(theirs)
                seen = rest_of(mine).decode()
                finish(process)
                self.assertEqual(process.returncode, 0, seen)
                self.assertEqual(f"{what}  " in seen, shows, seen)

    def test_help_fits_the_terminal(self):
        names = re.findall(r"(?m)^  (\w+) ", start([chorale, "--help"]).stdout)
        for words in (["--help"], *([name, "--help"] for name in names)):
            narrow, wide = (start([chorale, *words], COLUMNS=columns).stdout for columns in ("80", ""))
            self.assertEqual([line for line in narrow.splitlines() if len(line) > 80], [], words)
            self.assertEqual("".join(narrow.replace(" \\\n", "").split()), "".join(wide.split()))
        self.assertGreater(max(map(len, wide.splitlines())), 80)  # programs that read a pipe may search for complete lines

    def test_what_show_and_info_print_fits_the_terminal(self):
        for words in (["show"], ["show", "all_reduce", "ring"], ["show", "pipeline"], ["info"]):
            narrow, wide = (start([chorale, *words], COLUMNS=columns).stdout for columns in ("80", ""))
            self.assertEqual([line for line in narrow.splitlines() if len(line) > 80], [], words)
            if words[0] == "show":  # the output of info contains process ids
                self.assertEqual(sorted(set(narrow.split())), sorted(set(wide.split())))
                self.assertGreater(max(map(len, wide.splitlines())), 80)

    def test_an_option_that_is_on_says_yes_and_takes_every_word_for_no(self):
        self.assertRegex(start([chorale, "help", "bench"]).stdout, r"(?m)^  --check yes\|no  .*\(default yes\)$")
        for command in ("train", "prove", "bench", "report"):
            self.assertNotRegex(start([chorale, "help", command]).stdout, r"(default|only with [\w-]+) (true|false)")
        bench = ["bench", "--backend", "threads", "-b", "8", "-e", "8", "-n", "3"]
        for word, told in (("no", "not checked"), ("off", "not checked"), ("false", "not checked"), ("0", "not checked"),
                           ("on", "checked: "), ("1", "checked: ")):
            self.assertIn(f"# results were {told}", start([chorale, *bench, "--check", word]).stdout)
        self.refused(*bench, "--check", "maybe", says=['"maybe" is not a value of check', "check takes one of yes, no"])

    def test_info_names_every_backend_and_why_one_is_missing(self):
        result = start([chorale, "info", "--format", "json"])
        self.assertEqual(result.returncode, 0, result.stderr)
        info = json.loads(result.stdout)
        self.assertEqual([b["name"] for b in info["backends"]], ["mpi", "ucx", "shm", "shm+ucx", "nccl", "threads"])
        for backend in info["backends"]:
            self.assertTrue(backend["detail"] if backend["available"] else backend["why_not"], backend)
        self.assertEqual(len(info["ranks"]), 1)
        self.assertGreater(info["machine"]["memory_bytes"], 1 << 20)
        self.assertIn(info["machine"]["bf16_attention"], ["amx", "avx512_bf16", "f32"])
        plain = start([chorale, "info", "--format", "json"], CHORALE_BF16_ATTENTION="f32")
        self.assertEqual(json.loads(plain.stdout)["machine"]["bf16_attention"], "f32")
        wrong = start([chorale, "info"], CHORALE_BF16_ATTENTION="sse")
        self.assertEqual((wrong.returncode, wrong.stderr.splitlines()[1]), (2, "  CHORALE_BF16_ATTENTION=sse"))
        self.assertTrue(info["devices"]["cuda"] or info["devices"]["why_none"])

    def test_info_draws_who_sits_where_on_hosts_given_or_real(self):
        asked = [chorale, "info", "--layout", "dp2.tp2", "--order", "tp,dp", "--hosts", "2,2"]
        self.assertRegex(start(asked).stdout, r"(?m)^ n1 │ 2 tp1 dp0 │ 3 tp1 dp1$")
        seats = json.loads(start([*asked, "--format", "json"]).stdout)["seats"]
        self.assertEqual([axis["crossing"] for axis in seats["axes"]], [2, 0])
        real = json.loads(start([*launch, "-np", "2", chorale, "info", "--layout", "dp2", "--format", "json"]).stdout)
        self.assertEqual([rank["coordinates"]["dp"] for rank in real["seats"]["ranks"]], [0, 1])
        self.assertIn("core", real["seats"]["ranks"][1]["place"])
        self.assertEqual([host["ranks"] for host in real["topology"]], [[0, 1]])
        self.refused("info", "--layout", "dp2.tp2", "--hosts", "2,3", says=["4 ranks; there are 5"])
        self.refused("info", "--hosts", "2,2", says=["no layout is given"])

    def test_the_cores_of_the_machine_are_not_those_of_a_rank(self):
        one = min(os.sched_getaffinity(0))
        info = json.loads(start(["taskset", "-c", str(one), chorale, "info", "--format", "json"]).stdout)
        self.assertEqual(info["machine"]["cores"], os.sysconf("SC_NPROCESSORS_ONLN"))
        self.assertEqual(info["ranks"][0]["cpuset"], str(one))

    def test_info_on_ranks_is_recorded_and_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            result = ranks(3, chorale, "info", "--run-dir", folder, "--format", "json")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual([r["local_rank"] for r in json.loads(result.stdout)["ranks"]], [0, 1, 2])
            # All ranks of a host share one clock. So clock offsets must be 0, even if the round trips of messages on a busy
            # machine suggest other values.
            self.assertEqual([r["clock_offset_seconds"] for r in json.loads(result.stdout)["ranks"]], [0, 0, 0])
            file = os.path.realpath(f"{folder}/latest/run.h5")  # the rerun below makes `latest` point elsewhere
            self.assertEqual(sorted(os.listdir(f"{folder}/latest")), ["config.toml", "log", "metrics.jsonl", "run.h5"])
            self.assertEqual(sorted(os.listdir(f"{folder}/latest/log")), [f"rank-{r}.log" for r in range(3)])
            again = start([chorale, "info", "--config", f"{folder}/latest/config.toml"])
            self.assertEqual(again.returncode, 0, again.stderr)
            for form in ("text", "csv", "md", "json"):
                report = start([chorale, "report", file, "--format", form, *["--all"] * (form == "text")])
                self.assertEqual(report.returncode, 0, report.stderr)
                self.assertIn("local_rank", report.stdout)
                if form == "csv":
                    alone = start([chorale, "report", file, "--format", "csv", "--group", "ranks"]).stdout
                    self.assertEqual(len(list(csv.DictReader(io.StringIO(alone)))), 3)
                if form == "json":
                    found = json.loads(report.stdout)[0]
                    self.assertEqual([row["rank"] for row in found["groups"]["/ranks"]], [0, 1, 2])
                    self.assertEqual(found["attributes"]["status"], "ok")
                    self.assertIn("run-dir = command line", found["groups"]["/config"][0]["origins"])
            self.refused("report", file, "--group", "rnaks", says=['did you mean "/ranks"?'])

    def test_waiting_threads_soon_sleep_unless_the_environment_says_otherwise(self):
        command = ["env", "-u", "OMP_WAIT_POLICY", "-u", "GOMP_SPINCOUNT", "OMP_DISPLAY_ENV=verbose"]
        for setting, polls in ((), "500"), (["OMP_WAIT_POLICY=passive"], "0"), (["GOMP_SPINCOUNT=77"], "77"):
            result = start([*command, *setting, chorale, "info"])
            self.assertEqual(result.returncode, 0, result.stderr)
            # The OpenMP library prints its settings each time a process loads it. The last of these outputs comes from the
            # process that does the work.
            self.assertEqual(re.findall(r"GOMP_SPINCOUNT = '(\d+)'", result.stderr)[-1], polls)

    def test_another_launchers_ranks_are_told_apart_from_ours(self):
        # These variables look as if srun had started three ranks that MPI cannot connect. Each rank then sees a world of
        # size 1.
        result = start([chorale, "info"], SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="3")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("3 processes were launched, but each sees a world of size 1", result.stderr)
        self.assertIn("make MPICXX=", result.stderr)

    def test_verify_proves_every_algorithm(self):
        result = start([chorale, "verify", *([] if thorough else ["--ranks", "8"])])
        self.assertEqual(result.returncode, 0, result.stdout)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[-1], f"{len(lines) - 1} of {len(lines) - 1} algorithms proved")
        self.assertGreater(len(lines), 31)
        self.assertRegex(result.stdout, r"(?m)^pipeline +1f1b +proved on 128 problems of 1 to 8 stages")

    def test_verify_proves_only_what_is_named(self):
        def proved(*words):
            result = start([chorale, "verify", *words, "--ranks", "4"])
            self.assertEqual(result.returncode, 0, result.stderr)
            *rows, total = result.stdout.splitlines()
            self.assertEqual(total, f"{len(rows)} of {len(rows)} algorithms proved")
            return [tuple(row.split()[:2]) for row in rows]
        self.assertEqual(proved("all_reduce", "ring"), [("all_reduce", "ring")])
        self.assertEqual(proved("ring", "broadcast", "direct", "all_gather"),
                         [("all_gather", "ring"), ("all_gather", "direct"), ("broadcast", "direct")])
        self.assertEqual({collective for collective, _ in proved("all_to_all")}, {"all_to_all"})
        self.assertEqual({collective for collective, _ in proved("pipeline")}, {"pipeline"})
        self.assertEqual(proved("1f1b"), [("pipeline", "1f1b")])
        self.refused("verify", "all_reduce", "rnig", says=['no collective or algorithm "rnig"', 'did you mean "ring"?'])
        self.refused("verify", "al_reduce", says=['did you mean "all_reduce"?'])
        self.refused("verify", "nonsense", says=["there are all_reduce, ", "bruck", "1f1b", "name some of these"])
        self.refused("verify", "all_reduce", "bruck", says=['all_reduce has no algorithm "bruck"', "there are ring, "])
        self.refused("verify", "pipeline", "--hosts", "2,1", says=["a pipeline has no hosts"])

    def test_show_draws_prices_and_orders_an_algorithm(self):
        result = start([chorale, "show", "all_reduce", "ring", "--ranks", "3"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("round 4\n", result.stdout)
        self.assertIn("4 rounds; a rank sends 4 messages, 8 elements", result.stdout)
        self.assertIn("4 α + 1.333 nβ + 0.6667 nγ", result.stdout)
        self.assertIn("[0..2)    (r0 + (r1 + r2))", result.stdout)
        moved = start([chorale, "show", "all_gather", "ring", "--ranks", "3"]).stdout
        self.assertNotIn("order", moved)
        equal = start([chorale, "show", "all_reduce", "recursive_doubling"]).stdout
        self.assertIn("f32, f64:  same bits as binomial_tree", equal)
        self.assertIn("rounds are drawn for up to", start([chorale, "show", "all_reduce", "ring", "--ranks", "40"]).stdout)

    def test_show_prints_every_step_of_every_rank(self):
        result = start([chorale, "show", "all_reduce", "ring", "--ranks", "3", "--steps"])
        self.assertEqual(result.stdout.count("sends 8 elements"), 3, result.stdout)
        self.assertEqual(result.stdout.count("recv_reduce"), 6)
        self.assertNotIn("round 1\n", result.stdout)
        self.assertIn("→ scratch", start([chorale, "show", "all_reduce", "one_shot", "--steps", "--in-place"]).stdout)

    def test_show_cuts_into_chunks(self):
        cut = start([chorale, "show", "broadcast", "scatter_all_gather", "--chunks", "3"])
        self.assertEqual(cut.returncode, 0, cut.stderr)
        self.assertIn("4 ranks, 12 elements", cut.stdout)
        self.assertIn("…", cut.stdout)  # marks blocks that have only partly arrived

    def test_show_lists_what_there_is_with_prices(self):
        ours = start([chorale, "show", "all_gather", "--ranks", "5"])
        self.assertEqual(ours.returncode, 0, ours.stderr)
        self.assertRegex(ours.stdout, r"all_gather +ring +4 +4 +4 +0.8 +0 ")
        self.assertRegex(ours.stdout, r"all_gather +recursive_doubling +does not fit")
        self.assertNotIn("all_reduce", ours.stdout)
        self.assertNotIn("native", ours.stdout)
        self.assertIn("never for sums of u8", start([chorale, "show", "reduce"]).stdout)
        everything = start([chorale, "show"]).stdout
        for collective in ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter"):
            self.assertRegex(everything, rf"(?m)^{collective} ")

    def test_show_writes_a_diagram_that_is_well_formed(self):
        with tempfile.TemporaryDirectory() as folder:
            result = start([chorale, "show", "reduce", "binomial_tree", "--root", "2", "--svg", f"{folder}/tree.svg"])
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"picture {folder}/tree.svg", result.stdout)
            name = "{http://www.w3.org/2000/svg}"
            root = xml.etree.ElementTree.parse(f"{folder}/tree.svg").getroot()
            self.assertEqual(root.find(f"{name}title").text, "reduce binomial_tree, 4 ranks")
            arrows = [line for line in root.iter(f"{name}line") if line.get("class") == "message"]
            self.assertEqual(len(arrows), 3)
            self.refused("show", "all_reduce", "ring", "--svg", f"{folder}/no/tree.svg",
                         says=["cannot write the picture", "No such file"])

    def test_hosts_are_drawn_priced_and_proved(self):
        result = start([chorale, "show", "all_reduce", "hierarchical", "--hosts", "2,3,1"])
        self.assertEqual(result.returncode, 0, result.stderr)
        for said in ["6 ranks (n0: 0-1, n1: 2-4, n2: 5), 12 elements", "host  rank", "⇒", "between hosts",
                     "n2  sends 15 elements in 12 messages, receives 15 in 12"]:
            self.assertIn(said, result.stdout)
        flat = start([chorale, "show", "all_reduce", "hierarchical", "--ranks", "6"]).stdout
        self.assertNotIn("host  rank", flat)
        self.assertNotIn("⇒", flat)
        self.assertIn("4 ranks (n0: 0-2, n1: 3)", start([chorale, "show", "broadcast", "--hosts", "3,1"]).stdout)
        with tempfile.TemporaryDirectory() as folder:
            start([chorale, "show", "broadcast", "hierarchical", "--hosts", "2,1", "--svg", f"{folder}/tree.svg"])
            with open(f"{folder}/tree.svg") as file:
                picture = file.read()
            self.assertIn("n1, rank 2", picture)
            self.assertIn('class="message between"', picture)
        proved = start([chorale, "verify", "--hosts", "2,1"])
        self.assertEqual(proved.returncode, 0, proved.stderr)
        self.assertRegex(proved.stdout, r"broadcast +hierarchical +proved on \d+ problems of 3 ranks,")
        self.assertNotIn("NOT PROVED", proved.stdout)

    def test_hosts_that_cannot_be_are_refused(self):
        for command in (["show", "all_reduce", "ring"], ["verify"], ["bench", "--backend", "threads"]):
            for hosts in ("0,2", "2,x", "2,,1"):
                self.refused(*command, "--hosts", hosts, says=["number of ranks on each", "such as --hosts 2,3,1"])
            self.refused(*command, "--hosts", "2,3", "--ranks", "4", says=["--hosts 2,3: 5 ranks; there are 4"])
            self.refused(*command, "--hosts", "200,57", says=["--hosts 200,57: 257 ranks"])
        self.refused("bench", "--backend", "mpi", "--hosts", "2,2", says=["--hosts has 4 ranks; 1 processes run mpi"])
        self.refused("show", "pipeline", "1f1b", "--hosts", "2,2", says=["a pipeline has no hosts"])

    def test_show_says_what_there_is(self):
        self.refused("show", "all_reduce", "rnig", says=['did you mean "all_reduce ring"?'])
        self.refused("show", "all_redcue", says=['no collective "all_redcue"', 'did you mean "all_reduce"?'])
        self.refused("show", "all_reduce", "ring", "4", says=["3 words were given"])
        self.refused("show", "all_reduce", "--steps", says=["1 words were given"])
        self.refused("show", "all_gather", "recursive_doubling", "--ranks", "6",
                     says=["does not fit", "lists those that do"])
        self.refused("show", "broadcast", "binomial_tree", "--root", "4", says=["root 4 of 4 ranks"])

    def test_show_draws_and_prices_a_pipeline(self):
        result = start([chorale, "show", "pipeline", "1f1b", "--stages", "2", "--micro-batches", "3"])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 stages, 3 micro-batches\n", result.stdout)
        self.assertIn("stage 1 │   0  ▒0▒▒▒▒1  ▒1▒▒▒▒2  ▒2▒▒▒▒      │\n", result.stdout)
        self.assertIn("bubble 25.0 %", result.stdout)
        self.assertIn("sends must not wait for their receives", result.stdout)
        steps = start([chorale, "show", "pipeline", "zb-h1", "--stages", "2", "--micro-batches", "2", "--steps"]).stdout
        self.assertIn("stage 1  F0 B0 F1 B1 W0 W1\n", steps)
        chunks = start([chorale, "show", "pipeline", "interleaved", "--stages", "2", "--chunks", "3"]).stdout
        self.assertIn("2 stages, 8 micro-batches, 3 chunks per stage\n", chunks)

    def test_show_lists_pipelines_with_prices(self):
        listed = start([chorale, "show", "pipeline"]).stdout
        self.assertRegex(listed, r"(?m)^gpipe +1 +33 +27.3 +8 +16 ")
        self.assertRegex(listed, r"(?m)^interleaved +2 +28.5 +15.8 +5.5 +32 ")  # with the minimum number of chunks
        self.assertRegex(start([chorale, "show", "pipeline", "--chunks", "3"]).stdout, r"(?m)^gpipe +3 +does not fit")

    def test_what_is_said_of_a_pipelines_memory_is_what_it_keeps(self):
        def shown(name):
            text = start([chorale, "show", "pipeline", name]).stdout
            return text, [int(row.split()[2]) for row in re.findall(r"(?m)^ +\d+ +\d+ +\d+ +\d+$", text)]
        (_, one), (text, zero_bubble) = shown("1f1b"), shown("zb-h1")
        self.assertEqual(one, [4, 3, 2, 1])
        self.assertEqual(zero_bubble, [4, 4, 4, 4])
        self.assertIn("all stages keep as much as 1f1b's first stage\n", text)
        self.assertNotIn("no more memory", text)

    def test_show_writes_a_diagram_of_a_pipeline(self):
        with tempfile.TemporaryDirectory() as folder:
            result = start([chorale, "show", "pipeline", "zb-h1", "--svg", f"{folder}/h1.svg"])
            self.assertEqual(result.returncode, 0, result.stderr)
            name = "{http://www.w3.org/2000/svg}"
            root = xml.etree.ElementTree.parse(f"{folder}/h1.svg").getroot()
            self.assertEqual(root.find(f"{name}title").text, "pipeline zb-h1, 4 stages, 8 micro-batches")
            self.assertEqual(len([bar for bar in root.iter(f"{name}rect") if bar.get("class", "").startswith("bar")]),
                             4 * 8 * 3)

    def test_show_says_what_pipelines_there_are(self):
        self.refused("show", "pipeline", "1f1", says=['no pipeline schedule "1f1"', 'did you mean "1f1b"?'])
        self.refused("show", "pipline", says=['did you mean "pipeline"?'])
        self.refused("show", "pipeline", "interleaved", "--micro-batches", "6",
                     says=["6 micro-batches are not a multiple of 4 stages", "lists those that do"])
        self.refused("show", "pipeline", "1f1b", "--ranks", "4",
                     says=["a pipeline has no ranks", "--ranks 4", "it has --stages"])
        self.refused("show", "pipeline", "--in-place", says=["a pipeline has no in-place"])
        self.refused("show", "all_reduce", "--stages", "2", says=["a collective has no stages", "it has --ranks"])
        self.refused("show", "pipeline", "gpipe", "--chunks", "2", says=["it takes one chunk per stage, not 2"])

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            process = spawn([chorale, "info"], stdout=full, stderr=subprocess.PIPE)
        self.assertIn("No space left on device", finish(process)[1])
        self.assertEqual(process.returncode, 1)

    def test_a_reader_that_leaves_early_is_no_crash(self):
        with os.popen(f"{chorale} info --format json 2>&1 | head -n 1") as pipe:
            self.assertEqual(pipe.read(), "{\n")


if __name__ == "__main__":
    unittest.main()
