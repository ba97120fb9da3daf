"""Tests `chorale report --tensorboard`. The test reads the event files with the protobuf library and the CRC of checksum.py.
The event files must contain every value of a record, with its step and time."""
import calendar
import glob
import os
import struct
import tempfile
import time
import unittest

import h5py
import numpy
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from checksum import crc32c
from programs import chorale, ranks, start

tags = {"train/loss": "train/loss", "train/grad_norm": "train/grad_norm", "train/lr": "train/lr",
        "speed/tokens_per_s": "train/tokens_per_s", "speed/mfu": "train/mfu", "speed/step_time": "train/step_time"}


def event_type():
    """Returns TensorFlow's protobuf message Event, with the fields that this test needs."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="t", syntax="proto3")
    for name, fields in (("Value", [("tag", 1, field.TYPE_STRING, ""), ("simple_value", 2, field.TYPE_FLOAT, "")]),
                         ("Summary", [("value", 1, field.TYPE_MESSAGE, ".t.Value")]),
                         ("Event", [("wall_time", 1, field.TYPE_DOUBLE, ""), ("step", 2, field.TYPE_INT64, ""),
                                    ("file_version", 3, field.TYPE_STRING, ""),
                                    ("summary", 5, field.TYPE_MESSAGE, ".t.Summary")])):
        message = file.message_type.add(name=name)
        for label, number, kind, of in fields:
            repeated = field.LABEL_REPEATED if label == "value" else field.LABEL_OPTIONAL
            message.field.add(name=label, number=number, type=kind, label=repeated, **({"type_name": of} if of else {}))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName("t.Event")
    of_newer_versions = getattr(message_factory, "GetMessageClass", None)
    return of_newer_versions(found) if of_newer_versions else message_factory.MessageFactory(pool).GetPrototype(found)


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class TensorBoard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.folder = holder.name
        cls.addClassCleanup(holder.cleanup)
        run = ranks(2, chorale, "train", "--preset", "tiny", "--threads", "1", "--layout", "dp2", "--global-batch-size",
                    "4", "--train-iters", "5", "--eval-interval", "2", "--eval-samples", "4", "--no-save", "--run-dir",
                    cls.folder)
        assert run.returncode == 0, run.stderr
        cls.record = os.path.realpath(f"{cls.folder}/latest/run.h5")

    def events(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)  # the check value of CRC-32C
        at = 0
        while at < len(data):
            length, check = struct.unpack_from("<QI", data, at)
            self.assertEqual(check, masked(crc32c(data[at:at + 8])))
            body = data[at + 12:at + 12 + length]
            self.assertEqual(struct.unpack_from("<I", data, at + 12 + length)[0], masked(crc32c(body)))
            at += length + 16
            yield event_type().FromString(body)
        self.assertEqual(at, len(data))

    def scalars(self, path):
        """{tag: [(step, time, value)]}"""
        found = {}
        for event in list(self.events(path))[1:]:
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, event.wall_time, value.simple_value))
        return found

    def written(self, *words):
        result = start([chorale, "report", *words])
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.splitlines()

    def test_every_value_of_a_run_is_there(self):
        files = self.written(self.record, "--tensorboard", f"{self.folder}/board")
        self.assertEqual(files, glob.glob(f"{self.folder}/board/*/events.out.tfevents.*"))
        self.assertEqual(self.written(self.record, "--tensorboard", f"{self.folder}/board"), files)  # replaces the files
        self.assertEqual(next(self.events(files[0])).file_version, "brain.Event:2")
        found = self.scalars(files[0])
        with h5py.File(self.record) as record:
            self.assertEqual(os.path.basename(os.path.dirname(files[0])), record.attrs["run_id"].decode())
            began = calendar.timegm(time.strptime(record.attrs["launchdate"].decode(), "%Y-%m-%dT%H:%M:%SZ"))
            self.assertGreater(began, 1.7e9)
            for tag, variable in tags.items():
                values = record[variable][:]
                if numpy.isnan(values).all():
                    self.assertNotIn(tag, found)
                    continue
                self.assertEqual([step for step, _, _ in found[tag]], [1, 2, 3, 4, 5])
                numpy.testing.assert_array_equal([value for _, _, value in found[tag]], values.astype("float32"), tag)
                numpy.testing.assert_allclose([at - began for _, at, _ in found[tag]], record["train/time"][:], atol=1e-5)
            self.assertEqual([step for step, _, _ in found["eval/loss"]], list(record["eval/step"][:]))
            numpy.testing.assert_array_equal([value for _, _, value in found["eval/loss"]],
                                             record["eval/loss"][:].astype("float32"))
            at = dict((step, when) for step, when, _ in found["train/loss"])
            self.assertTrue(all(when == at[max(step, 1)] for step, when, _ in found["eval/loss"]))
        self.assertIn("train/loss", found)
        self.assertIn("train/grad_norm", found)

    def test_a_nan_among_the_losses_is_shown(self):
        broken = f"{self.folder}/broken.h5"
        with h5py.File(self.record) as record, h5py.File(broken, "w") as file:
            for name in record:
                record.copy(name, file)
            file.attrs.update(record.attrs)
            file["train/loss"][3] = float("nan")
        found = self.scalars(self.written(broken, "--tensorboard", f"{self.folder}/nan")[0])
        self.assertEqual([numpy.isnan(value) for _, _, value in found["train/loss"]], [False, False, False, True, False])

    def test_runs_of_a_suite_have_folders_of_their_own(self):
        suite = f"{self.folder}/suite.h5"
        with h5py.File(self.record) as record, h5py.File(suite, "w") as file:
            file.attrs.update(record.attrs)
            for name in ("one", "two"):
                record.copy(record["/"], file, f"runs/{name}")
        files = self.written(suite, "--tensorboard", f"{self.folder}/suites")
        self.assertEqual([os.path.basename(os.path.dirname(file)) for file in files], ["one", "two"])

    def test_what_cannot_be_written_is_refused_in_three_lines(self):
        info = start([chorale, "info", "--run-dir", f"{self.folder}/info"])
        self.assertEqual(info.returncode, 0, info.stderr)
        untrained = f"{self.folder}/info/latest/run.h5"
        for words, says in (([untrained, "--tensorboard", f"{self.folder}/x"], "none of the runs has"),
                            ([self.record, "--tensorboard", "README.md"], "README.md"),
                            ([self.record, "--tensorboard", "x", "--html"], "exclude one another")):
            result = start([chorale, "report", *words])
            self.assertEqual((result.returncode, len(result.stderr.splitlines())), (2, 3), result.stderr)
            self.assertIn(says, result.stderr)


if __name__ == "__main__":
    unittest.main()
