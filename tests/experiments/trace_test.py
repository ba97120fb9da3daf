"""Tests `train --trace-steps`. The file for trace viewers and the group /comm of the record must agree with the rest of the
record."""
import collections
import json
import os
import re
import tempfile
import unittest

import h5py
import xarray

from programs import chorale, ranks, start

small = ["--preset", "tiny", "--threads", "1", "--global-batch-size", "4", "--micro-batch-size", "1", "--eval-samples", "4",
         "--no-save"]


def words(column):
    meanings = column.attrs["flag_meanings"].split()
    return [meanings[code] for code in column.values]


class Trace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.result = ranks(4, chorale, "train", *small, "--layout", "dp2.pp2.z1", "--train-iters", "3", "--trace-steps",
                           "2:3", "--run-dir", holder.name)
        assert cls.result.returncode == 0, cls.result.stderr
        folder = os.path.join(holder.name, "latest")
        cls.record = os.path.join(folder, "run.h5")
        with open(os.path.join(folder, "trace.json"), encoding="utf-8") as file:
            cls.trace = json.load(file)
        cls.events = cls.trace["traceEvents"]

    def named(self, what):
        return {(e["pid"], e["tid"]): e["args"]["name"] for e in self.events if e["ph"] == "M" and e["name"] == what}

    def track(self, name):
        tracks = {place for place, words in self.named("thread_name").items() if words == name}
        return [e for e in self.events if e["ph"] == "X" and (e["pid"], e["tid"]) in tracks]

    def test_every_event_has_what_viewers_require(self):
        for event in self.events:
            with self.subTest(event=event):
                self.assertIn(event["ph"], "MXbe")
                self.assertIsInstance(event["name"], str)
                self.assertIn(event["pid"], range(4))
                self.assertIsInstance(event["tid"], int)
                if event["ph"] != "M":
                    self.assertGreaterEqual(event["ts"], 0)
                    self.assertIn((event["pid"], event["tid"]), self.named("thread_name"))
                if event["ph"] == "X":
                    self.assertGreaterEqual(event["dur"], 0)
                if event["ph"] in "be":
                    self.assertTrue(event["cat"] and event["id"])

    def test_processes_are_ranks_and_say_where_in_the_mesh_they_are(self):
        names = {pid: name for (pid, _), name in self.named("process_name").items()}
        with h5py.File(self.record) as file:
            place = {axis: file[f"ranks/{axis}"][:] for axis in ("dp", "pp")}  # axes of more than one rank
        self.assertEqual(names, {r: f"rank {r}: dp{place['dp'][r]} pp{place['pp'][r]}" for r in range(4)})

    def test_time_runs_forward_on_every_track_and_only_layers_and_kernels_are_nested(self):
        tracks = collections.defaultdict(list)
        names = self.named("thread_name")
        for event in self.events:
            if event["ph"] == "X":
                tracks[event["pid"], event["tid"]].append((round(1e3 * event["ts"]), round(1e3 * event["dur"])))
        self.assertGreaterEqual(len(tracks), 6 * 4)
        for track, events in tracks.items():
            with self.subTest(track=names[track]):
                around = []  # the end times of the events that enclose this event
                for ts, dur in events:
                    around = [end for end in around if end > ts]
                    self.assertTrue(all(ts + dur <= end for end in around))
                    if names[track] not in ("layers", "kernels"):
                        self.assertEqual(around, [])
                    around.append(ts + dur)

    def test_layers_and_kernels_are_in_their_passes(self):
        for rank in range(4):
            passes = [(e["ts"], e["ts"] + e["dur"]) for e in self.track("passes") if e["pid"] == rank]
            layers = [e for e in self.track("layers") if e["pid"] == rank]
            names = collections.Counter(e["name"] for e in layers)
            self.assertEqual("embedding" in names, self.stage(rank) == 0)
            self.assertEqual("head" in names, self.stage(rank) == 1)
            self.assertEqual(set(names.values()), {2 * 2 * 2})  # steps × micro-batches × passes
            self.assertTrue(any(re.fullmatch(r"block\.\d+\.attention\.qkv", name) for name in names))
            for layer in layers:
                self.assertTrue(any(begin <= layer["ts"] + 1e-3 and layer["ts"] + layer["dur"] <= end + 1e-3
                                    for begin, end in passes), layer)
            kernels = [e for e in self.track("kernels") if e["pid"] == rank]
            products = [e["args"] for e in kernels if "flops" in e["args"]]
            self.assertGreater(len(kernels), len(products))
            self.assertTrue(products)
            for args in products:
                self.assertRegex(args["shape"], r"^\d+×\d+×\d+")
                self.assertGreater(args["bytes"], 0)

    def stage(self, rank):
        with h5py.File(self.record) as file:
            return file["ranks/pp"][rank]

    def test_it_is_of_the_steps_asked_for_and_no_others(self):
        self.assertEqual({e["args"]["step"] for e in self.events if e["ph"] in "Xb"}, {2, 3})
        for rank in range(4):
            self.assertEqual([e["name"] for e in self.track("steps") if e["pid"] == rank], ["step 2", "step 3"])
        steps = {(e["pid"], e["args"]["step"]): e for e in self.track("steps")}
        for event in self.events:
            if event["ph"] == "X":
                step = steps[event["pid"], event["args"]["step"]]
                self.assertGreaterEqual(event["ts"], step["ts"])
                self.assertLessEqual(event["ts"] + event["dur"], step["ts"] + step["dur"] + 1e-3)

    def test_ranks_of_one_step_are_at_the_same_time(self):
        # The loss is summed over all ranks, so no rank ends a step before all ranks have begun this step.
        for step in (2, 3):
            events = [e for e in self.track("steps") if e["args"]["step"] == step]
            self.assertGreater(min(e["ts"] + e["dur"] for e in events), max(e["ts"] for e in events))

    def test_each_pass_of_each_micro_batch_is_there(self):
        for rank in range(4):
            names = collections.Counter(e["name"] for e in self.track("passes") if e["pid"] == rank)
            self.assertEqual(names, {name: 2
                                     for name in ("data 0", "data 1", "forward 0", "forward 1", "backward 0", "backward 1",
                                                  "optimizer")})

    def test_its_clock_is_the_one_that_the_pipeline_was_measured_by(self):
        traced = {(e["pid"], e["name"], e["args"]["chunk"]): e["ts"] for e in self.track("passes")
                  if e["args"]["step"] == 3 and e["name"].split()[0] in ("forward", "backward")}
        with xarray.open_dataset(self.record, group="pipeline") as pipeline:
            kinds = words(pipeline.kind)
            origins = [1e6 * t - traced[rank, f"{kind} {micro_batch}", chunk] for rank, kind, micro_batch, chunk, t in
                       zip(pipeline["rank"].values, kinds, pipeline.micro_batch.values, pipeline["chunk"].values,
                           pipeline.t_start.values)]
        self.assertEqual(len(origins), len(traced))
        self.assertLess(max(origins) - min(origins), 0.01, "µs")

    def test_what_is_under_way_begins_and_ends_once(self):
        begun = [(e["id"], e["name"], e["pid"], e["ts"]) for e in self.events if e["ph"] == "b"]
        ended = {e["id"]: (e["name"], e["pid"], e["ts"]) for e in self.events if e["ph"] == "e"}
        self.assertEqual(len(begun), len(ended))
        self.assertEqual({name for _, name, _, _ in begun},
                         {"dp reduce_scatter", "dp all_gather", "ends all_reduce", "pp send", "pp recv"})
        for key, name, pid, ts in begun:
            self.assertEqual(ended[key][:2], (name, pid))
            self.assertLessEqual(ts, ended[key][2])

    def test_comm_has_the_same_calls_and_what_their_steps_waited(self):
        with xarray.open_dataset(self.record, group="comm") as comm, xarray.open_dataset(self.record,
                                                                                         group="phases") as phases:
            self.assertEqual(set(comm.dims), {"call"})
            self.assertEqual(set(comm.step.values), {2, 3})
            self.assertEqual(set(words(comm.axis)), {"dp", "pp", "ends", "world"})
            self.assertEqual(set(words(comm.dtype)), {"f32", "f64"})
            self.assertEqual(len(set(words(comm.backend))), 1)
            rows = collections.Counter(zip(comm["rank"].values.tolist(), words(comm.op)))
            drawn = collections.Counter((e["pid"], e["name"].removeprefix("wait ")) for e in self.events
                                        if e["ph"] == "X" and e["cat"] in ("communication", "pipeline")
                                        and not e["name"].startswith("start "))
            self.assertEqual(rows, drawn)
            self.assertTrue((comm.exposed.values <= comm.duration.values + 1e-12).all())
            kinds = phases.phase.flag_meanings.split()
            for step in (2, 3):
                said = phases.phase_time.sel(step=step).values
                for rank in range(4):
                    mine = (comm.step.values == step) & (comm["rank"].values == rank)
                    self.assertEqual(comm.seq.values[comm["rank"].values == rank].tolist(),
                                     list(range((comm["rank"].values == rank).sum())))
                    self.assertAlmostEqual(comm.exposed.values[mine].sum(),
                                           said[rank, kinds.index("comm_exposed")] + said[rank, kinds.index("bubble")],
                                           places=9)
            drawn = {e["id"]: e["ts"] for e in self.events if e["ph"] == "b"}
            begun = {f"{rank}.{seq}": 1e6 * t for rank, seq,
                     t in zip(comm["rank"].values, comm.seq.values, comm.t_start.values)}
            origins = [begun[key] - ts for key, ts in drawn.items()]
            self.assertLess(max(origins) - min(origins), 0.01, "µs: both must use the same clock")

    def test_it_says_where_it_is_and_that_nothing_is_missing(self):
        self.assertRegex(self.result.stdout, r"traced \d+ passes, \d+ layers and kernels, and \d+ calls to "
                                             r"\S+/trace.json: open it in ui.perfetto.dev")
        self.assertEqual(self.trace["otherData"]["left_out"], {})


class Asked(unittest.TestCase):
    def train(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            result = start([chorale, "train", *small, "--train-iters", "2", "--run-dir", folder, *options])
            made = os.path.join(folder, "latest")
            return result, os.listdir(made) if os.path.exists(made) else []

    def test_what_names_no_steps_is_refused_in_three_lines(self):
        for asked, why in (("5:2", "step 5 is the first and 2 the last"), ("0:3", '"0" is not a step'),
                           ("x", '"x" is not a step'), ("1:", '"" is not a step'), (":", '"" is not a step'),
                           ("1:2:3", '"2:3" is not a step'), ("-1", '"-1" is not a step'), ("1.5", '"1.5" is not a step'),
                           ("99999999999999999999", '"99999999999999999999" is not a step')):
            with self.subTest(asked=asked):
                result, files = self.train(f"--trace-steps={asked}")
                self.assertEqual((result.returncode, files), (2, []))
                lines = result.stderr.strip().splitlines()
                self.assertEqual(len(lines), 3, result.stderr)
                self.assertTrue(lines[0].startswith("error: "), lines[0])
                self.assertIn(why, lines[1])

    def test_steps_that_the_run_does_not_reach_are_said(self):
        result, files = self.train("--trace-steps", "10:13")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("nothing was traced", result.stderr)
        self.assertIn("10 to 13", result.stderr)
        self.assertNotIn("trace.json", files)

    def test_one_step_and_none(self):
        result, files = self.train("--trace-steps", "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("trace.json", files)
        self.assertNotIn("trace.json", self.train()[1])


if __name__ == "__main__":
    unittest.main()
