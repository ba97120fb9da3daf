"""Compares the measured pipeline of a real run with the pipeline schedule. Every stage must have run its actions in the
order of the schedule, and no action may have begun before its inputs arrived. The expected order comes from `show pipeline`,
not from the run."""
import os
import re
import tempfile
import unittest

import h5py

from programs import chorale, ranks, sample, start

micro_batches = 4


def planned(schedule, stages, chunks):
    """Returns the actions of each stage in order, such as "F0 F1 B0 …"."""
    shown = start([chorale, "show", "pipeline", schedule, "--stages", str(stages), "--micro-batches", str(micro_batches),
                   "--chunks", str(chunks), "--steps"])
    return re.findall(r"(?m)^stage +\d+  (.*)$", shown.stdout)


class Event:
    """A pipeline action on one rank. All ranks run on one host and share its clock. So the estimated clock offsets are
    removed from the recorded times."""

    def __init__(self, table, offsets, i):
        self.rank, self.stage, self.micro_batch, self.chunk = (int(table[c][i])
                                                               for c in ("rank", "stage", "micro_batch", "chunk"))
        self.kind = "FBW"[table["kind"][i]]
        self.begins, self.ends = (float(table[c][i]) - offsets[self.rank] for c in ("t_start", "t_end"))

    def label(self, chunks):
        return f"{self.kind}{self.micro_batch}" + ("abc"[self.chunk] if chunks > 1 else "")


class Gantt(unittest.TestCase):
    def events(self, count, layout, layers=4):
        with tempfile.TemporaryDirectory() as folder:
            batch = micro_batches * (2 if "dp2" in layout else 1)
            result = ranks(count, chorale, "train", "--preset", "tiny", "--threads", "1", "--num-layers", str(layers),
                           "--eval-samples", "4",
                           "--global-batch-size", str(batch), "--micro-batch-size", "1", "--train-iters", "2", "--layout",
                           layout, "--run-dir", folder, "--no-save")
            self.assertEqual(result.returncode, 0, result.stderr)
            with h5py.File(os.path.join(folder, "latest", "run.h5")) as file:
                table, offsets = {name: column[:] for name,
                                  column in file["pipeline"].items()}, file["ranks/clock_offset"][:]
        return [Event(table, offsets, i) for i in range(len(table["rank"]))]

    def check_order(self, events, count, schedule, stages, chunks):
        lists = planned(schedule, stages, chunks)
        self.assertEqual(len(lists), stages)
        for rank in range(count):
            mine = sorted((e for e in events if e.rank == rank), key=lambda e: e.begins)
            self.assertEqual(" ".join(e.label(chunks) for e in mine), lists[mine[0].stage], f"rank {rank}")
            for one, other in zip(mine, mine[1:]):
                self.assertLessEqual(one.ends, other.begins, "a rank runs one action at a time")

    def check_causes(self, events, count, stages, chunks, returns):
        def part_of(event):  # with v-min (`returns`), second chunks go from the last stage back to the first
            stage = stages - 1 - event.stage if returns and event.chunk == 1 else event.stage
            return event.chunk * stages + stage
        last = stages * chunks - 1
        replicas = count // stages
        found = {(e.rank % replicas, e.kind, e.micro_batch, part_of(e)): e for e in events}
        for (replica, kind, micro_batch, part), event in found.items():
            if kind == "F":
                cause = ("F", part - 1) if part > 0 else None
            elif kind == "B":
                cause = ("B", part + 1) if part < last else ("F", part)
            else:
                cause = ("B", part)
            if cause:
                before = found[replica, cause[0], micro_batch, cause[1]]
                self.assertLess(before.ends, event.begins + 1e-9, f"{kind}{micro_batch} of part {part} before {cause}")

    def test_what_was_measured_is_the_schedule(self):
        cases = [(2, "pp2", name, 1) for name in ("naive", "gpipe", "1f1b", "zb-h1")] + [(2, "pp2", "interleaved", 2)]
        cases += [(4, "pp4", name, 1) for name in ("gpipe", "1f1b", "zb-h1")] + [(4, "dp2.pp2", "interleaved", 2)]
        cases += [(2, "pp2", "v-min", 2), (4, "pp4", "v-min", 2)]
        for count, word, schedule, chunks in sample(cases, 3):
            with self.subTest(layout=word, schedule=schedule):
                stages = int(word[-1])
                events = self.events(count, f"{word}.{schedule}" + (f".v{chunks}" if chunks > 1 else ""),
                                     layers=max(4, stages * chunks))
                self.check_order(events, count, schedule, stages, chunks)
                self.check_causes(events, count, stages, chunks, schedule == "v-min")


if __name__ == "__main__":
    unittest.main()
