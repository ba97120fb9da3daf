"""Checks that old files stay readable. The test writes a checkpoint and a run record in the documented formats, without
using the program's code. The program must read both files exactly. The program must refuse files of a newer format with an
error that names both versions.

The state of a model with 4 blocks is split at random indices among the files of 3 ranks. SEED selects different indices.
"""
import json
import math
import os
import random
import struct
import tempfile
import unittest

import h5py
import numpy

from checkpoint_files import read_checkpoint
from checksum import crc32c
from programs import chorale, start, tests_run, without_mpi
from tally import Tally

version = 1  # format version of the checkpoints below
layers, width, ffn, sequence, vocabulary, step = 4, 12, 24, 6, 32, 7
model = {"family": "gpt2", "layers": layers, "heads": 4, "groups": 4, "width": width, "ffn": ffn, "sequence": sequence,
         "vocabulary": vocabulary, "dropout": 0.1, "epsilon": 1e-5, "rotary_base": 10000.0, "tied": True}
layouts = ["dp1", "dp2.tp2.z1", "dp1.tp2.pp2", "dp4.z3", "dp3.z2", "dp2.rep2.z3", "dp1.pp2.v2"]


def shapes():
    block = {"attention.norm.gain": [width], "attention.norm.shift": [width], "attention.qkv.weight": [width, 3 * width],
             "attention.qkv.bias": [3 * width], "attention.out.weight": [width, width], "attention.out.bias": [width],
             "mlp.norm.gain": [width], "mlp.norm.shift": [width], "mlp.up.weight": [width, ffn], "mlp.up.bias": [ffn],
             "mlp.down.weight": [ffn, width], "mlp.down.bias": [width]}
    weights = {"embedding.weight": [vocabulary, width], "position.weight": [sequence, width], "norm.gain": [width],
               "norm.shift": [width]}
    for layer in range(layers):
        weights.update({f"block.{layer}.{name}": shape for name, shape in block.items()})
    return {prefix + name: shape for prefix in ("", "moment1/", "moment2/") for name, shape in weights.items()}


def cuts(length, choose):
    """Returns random boundaries from 0 to length."""
    at = sorted([0, length, *(choose.randint(0, length) for _ in range(choose.randint(0, 2)))])
    return list(zip(at, at[1:]))


def parts(shape, choose):
    """Divides a tensor into slabs along one dim, and each slab into ranges of elements. Returns pairs of a part and the
    indices of its elements."""
    where = numpy.arange(math.prod(shape)).reshape(shape)
    dim = choose.randint(-1, len(shape) - 1)
    for first, end in [(0, 0)] if dim < 0 else cuts(shape[dim], choose):
        slab = where if dim < 0 else where.take(range(first, end), dim)
        for begin, until in cuts(slab.size, choose):
            yield ({"slab": {"dim": dim, "first": first, "length": end - first}, "first": begin, "count": until - begin},
                   slab.reshape(-1)[begin:until])


def write_checkpoint(folder, tensors, choose, number=version):
    """`tensors` is {name: array of f32}. All data of one tensor on one rank form one entry of the rank's file."""
    ranks = 3
    contents, stored = [{} for _ in range(ranks)], {}
    for name, values in tensors.items():
        pieces = [(rank, part, values.reshape(-1)[where].tobytes())
                  for rank, (part, where) in enumerate(parts(values.shape, choose))]
        while len(pieces) > ranks:  # a rank has at most one part of a tensor
            pieces = [(rank, part, values.reshape(-1)[where].tobytes())
                      for rank, (part, where) in enumerate(parts(values.shape, choose))]
        for rank, part, data in pieces:
            contents[rank][name] = data
        stored[name] = {"shape": list(values.shape), "dtype": "f32",
                        "parts": [{"rank": rank, "part": part, "crc32c": crc32c(data)} for rank, part, data in pieces]}
    os.makedirs(folder)
    files = []
    for rank, entries in enumerate(contents):
        header, at = {}, 0
        for name, data in entries.items():
            header[name] = {"dtype": "F32", "shape": [len(data) // 4], "data_offsets": [at, at + len(data)]}
            at += len(data)
        text = json.dumps(header).encode()
        start_of_data = struct.pack("<Q", len(text)) + text
        with open(f"{folder}/rank-{rank}.safetensors", "wb") as file:
            file.write(start_of_data + b"".join(entries.values()))
        files.append({"bytes": len(start_of_data) + at, "header_crc32c": crc32c(start_of_data)})
    metadata = {"step": step, "cursor": 8 * step, "seed": 99, "loss_scale": 0.0, "good_steps": 0, "patience": 2,
                "updates": step, "model": model, "blocks": {}, "config": ""}
    body = json.dumps({"format": "chorale checkpoint", "version": number, "metadata": metadata, "files": files,
                       "tensors": stored})
    with open(f"{folder}/manifest.json", "w", encoding="ascii") as file:
        file.write(f'{{"crc32c":"{crc32c(body.encode()):08x}","manifest":{body}}}\n')
    return metadata


class Golden(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.tally = Tally(self)
        self.choose = random.Random(int(os.environ.get("SEED", "1")))
        bits = numpy.random.default_rng(self.choose.randrange(1 << 30))
        self.tensors = {name: bits.standard_normal(shape).astype("<f4") for name, shape in shapes().items()}

    def refused(self, *words, says):
        result = start([os.path.abspath(chorale), *words], folder=self.folder, **without_mpi)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"\Aerror: .*\n  .*\n  .*\n\Z")
        for part in says:
            self.assertIn(part, result.stderr)

    def test_any_layout_loads_a_checkpoint_of_this_format_exactly(self):
        written = write_checkpoint(f"{self.folder}/golden", self.tensors, self.choose)
        result = start([tests_run, "[.golden-loader]"], TEST_FOLDER=self.folder, TEST_LAYOUTS=" ".join(layouts))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for layout in layouts:
            with self.tally.trial(layout):
                metadata, tensors = read_checkpoint(f"{self.folder}/{layout}/step-{step}")
                for fact in ("step", "cursor", "seed", "updates"):
                    self.assertEqual(metadata[fact], written[fact], fact)
                for fact, value in model.items():
                    self.assertEqual(metadata["model"][fact], value, fact)
                self.assertEqual(tensors.keys(), self.tensors.keys())
                for name, values in self.tensors.items():
                    self.assertEqual(tensors[name], ("f32", values.tobytes()), name)

    def test_a_newer_checkpoint_is_refused_by_its_version(self):
        write_checkpoint(f"{self.folder}/golden", self.tensors, self.choose, version + 1)
        for words in (["train", "--load", "golden"], ["generate", "--load", "golden"], ["export", "--load", "golden",
                                                                                        "--out", "new"]):
            with self.tally.trial(words[0]):
                self.refused(*words, says=["newer format", f"has version {version + 1}", f"up to {version}"])

    def record(self, number):
        path = f"{self.folder}/run.h5"
        with h5py.File(path, "w", libver="earliest") as file:
            file.attrs["schema"] = numpy.bytes_("chorale")
            file.attrs["schema_version"] = number
            file.attrs["status"] = numpy.bytes_("ok")
            train = file.create_group("train")
            train["step"] = numpy.arange(1, 4)
            train["loss"] = numpy.array([4.25, 3.5, 3.125])
            train["step"].make_scale("step")
            train["loss"].dims[0].attach_scale(train["step"])
        return path

    def test_a_record_of_this_format_is_read_exactly_and_a_newer_one_is_refused(self):
        with self.tally.trial("this format"):
            result = start([chorale, "report", self.record(1), "--format", "json"])
            self.assertEqual(result.returncode, 0, result.stderr)
            rows = json.loads(result.stdout)[0]["groups"]["/train"]
            self.assertEqual([(row["step"], row["loss"]) for row in rows], [(1, 4.25), (2, 3.5), (3, 3.125)])
        with self.tally.trial("a newer format"):
            self.refused("report", self.record(2), says=["its schema version is 2; this program reads up to 1"])

    def test_newer_files_of_other_kinds_are_refused_by_their_versions(self):
        files = {
            "machine.toml": ('schema = "chorale machine"\nversion = 9\nmachine = "x"\ncores = 1\n',
                             ["show", "all_reduce", "ring", "--machine"],
                             ["version is 9, but this program reads version 1"]),
            "tuning.json": ('{"schema": "chorale tuning", "version": 9, "machine": "x", "choices": []}',
                            ["bench", "all_reduce", "--tuning"],
                            ["its version is 9; this program reads version 1"]),
            "tokens.bin": (struct.pack("<iii", 20240520, 9, 10).ljust(1024, b"\0") + bytes(20),
                           ["data", "show"], ["its version is 9; this program reads version 1"]),
        }
        for name, (content, words, says) in files.items():
            with self.tally.trial(name):
                with open(f"{self.folder}/{name}", "wb") as file:
                    file.write(content if isinstance(content, bytes) else content.encode())
                self.refused(*words, name, says=[name, *says])
        os.makedirs(f"{self.folder}/run/flight")
        with open(f"{self.folder}/run/flight/n0.json", "w", encoding="ascii") as file:
            json.dump({"version": 9, "host": "n0", "ranks": []}, file)
        with self.tally.trial("n0.json"):
            self.refused("explain", "run", says=["n0.json", "its version is 9; this program reads up to 1"])


if __name__ == "__main__":
    unittest.main()
