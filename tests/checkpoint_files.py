"""An independent reader of checkpoints. The reader follows docs/architecture/checkpoints.md and parallel/state/manifest.hpp,
and uses no code of the program."""
import json
import math

import numpy

widths = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "u8": 1}


def elements_of(part, shape):
    """A part holds some elements of a tensor. Returns the positions of these elements in the full tensor."""
    where, slab = numpy.arange(math.prod(shape)).reshape(shape), part["slab"]
    if slab["dim"] >= 0:
        where = where.take(range(slab["first"], slab["first"] + slab["length"]), slab["dim"])
    return where.reshape(-1)[part["first"]:part["first"] + part["count"]]


def read_checkpoint(folder):
    """Returns the checkpoint's metadata and {name: (type, bytes)} of its full tensors, joined from the parts of all
    ranks."""
    with open(f"{folder}/manifest.json", encoding="utf-8") as file:
        manifest = json.load(file)["manifest"]
    files = []
    for rank in range(len(manifest["files"])):
        with open(f"{folder}/rank-{rank}.safetensors", "rb") as file:
            content = file.read()
        ends = 8 + int.from_bytes(content[:8], "little")
        files.append((json.loads(content[8:ends]), content[ends:]))
    tensors = {}
    for name, stored in manifest["tensors"].items():
        shape, dtype = stored["shape"], stored["dtype"]
        values = numpy.zeros(math.prod(shape), f"V{widths[dtype]}")
        missing = numpy.ones(values.size, bool)
        for piece in stored["parts"]:
            header, data = files[piece["rank"]]
            where = elements_of(piece["part"], shape)
            values[where] = numpy.frombuffer(data[slice(*header[name]["data_offsets"])], values.dtype)
            missing[where] = False
        assert not missing.any(), f"{name} is not whole"
        tensors[name] = (dtype, values.tobytes())
    return manifest["metadata"], tensors
