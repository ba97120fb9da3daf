#!/usr/bin/python3
"""Times training of the preset nano in chorale and in PyTorch (torch_gpt.py), on one and on two ranks, with one core per
rank. Chorale and all modes of PyTorch take turns, so that other load on the machine affects all of them.

  experiments/peers/train.py [--python PATH] [--turns 3] [--steps 10] [--dtypes bf16,f32] [--ranks 1,2]
                             [--modes eager,compiled]

  ranks   chorale      PyTorch
  1       dp1          eager; torch.compile
  2       dp2          DistributedDataParallel, eager and compiled
          dp2.z3       FSDP (fully_shard), eager and compiled; from PyTorch 2.6 on

--python names the Python interpreter of any environment with PyTorch, such as /opt/torch/bin/python. The default is the
interpreter of this script, which finds Debian's python3-torch. Modes that this PyTorch version lacks are left out, and a
line says so.

Prints a table: the versions, medians of tokens/s over all turns, and chorale's speed divided by that of each PyTorch mode.
"""
import argparse
import os
import re
import socket
import statistics
import subprocess
import sys

import runs

sequences = 8  # per rank and step


def ours(layout, ranks, dtype, steps):
    """Returns tokens/s and MFU of all steps except the first two, and the measured peak of matrix products in GFLOP/s."""
    launcher = ["mpirun", "--bind-to", "none", "-np", str(ranks)] if ranks > 1 else []
    start = lambda *words: subprocess.run([*launcher, *words], check=True, capture_output=True, text=True,
                                          env={**os.environ, **runs.as_root})
    result, rows = runs.train(start, layout, dtype, sequences * ranks, steps)
    peak = float(re.search(r"products reach (\d+) GFLOP/s", result.stderr + result.stdout).group(1))
    return [row["tokens_per_s"] for row in rows], [row["mfu"] for row in rows], peak


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


def torch(python, ranks, dtype, steps, mode, shards):
    """Starts torch_gpt.py on every rank. Returns rank 0's tokens/s."""
    shared = {**os.environ, "OMP_NUM_THREADS": "1", "AMP": str(int(dtype == "bf16")), "STEPS": str(steps),
              "B": str(sequences), "COMPILE": str(int(mode == "compiled")), "SHARDS": str(int(shards)),
              "WORLD_SIZE": str(ranks), "MASTER_PORT": free_port(),
              "CUDA_VISIBLE_DEVICES": ""}  # otherwise FSDP would train on a GPU, if there is one
    processes = [subprocess.Popen([python, os.path.join(runs.here, "torch_gpt.py")], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env={**shared, "RANK": str(rank)})
                 for rank in range(ranks)]
    said = [process.communicate() for process in processes]
    for process, (_, errors) in zip(processes, said):
        if process.returncode:
            sys.exit(f"torch_gpt.py ended with {process.returncode}:\n{errors}")
    return float(re.search(r"tokens/s=(\d+)", said[0][0]).group(1))


def torch_version(python):
    found = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if found.returncode:
        reason = (found.stderr.strip().splitlines() or ["it says nothing"])[-1]
        sys.exit(f"error: PyTorch is not there\n  {python} cannot import torch: {reason}\n"
                 "  name an interpreter that can: --python /opt/torch/bin/python")
    return found.stdout.strip()


def modes_of(version, ranks, wanted):
    """Returns (name, mode, whether parameters are sharded) for each mode that this version of PyTorch has."""
    number = tuple(map(int, re.findall(r"\d+", version)[:2]))
    for shards in (False, True)[:ranks]:
        for mode in wanted:
            name = ", ".join([mode, *["FSDP" if shards else "DDP"][:ranks - 1]])
            if number >= ((2, 6) if shards else (2, 0) if mode == "compiled" else (0, 0)):
                yield name, mode, shards
            else:
                print(f"left out: {name}, which PyTorch {version} does not have", file=sys.stderr)


def rows(options, version, ranks, dtype):
    """Runs all programs in turns. Yields (program, tokens/s, more results, tokens/s of the corresponding chorale layout)."""
    layouts = ["dp1"] if ranks == 1 else ["dp2", "dp2.z3"]
    modes = list(modes_of(version, ranks, options.modes.split(",")))
    # PyTorch 1.13 needs 40 s per step in f32.
    steps = 3 if dtype == "f32" and version.startswith("1.") else options.steps
    mine, theirs = {layout: ([], [], []) for layout in layouts}, {name: [] for name, *_ in modes}
    for _ in range(options.turns):
        for layout in layouts:
            speeds, shares, peak = ours(layout, ranks, dtype, options.steps)
            mine[layout][0].extend(speeds)
            mine[layout][1].extend(shares)
            mine[layout][2].append(peak)
        for name, mode, shards in modes:
            theirs[name].append(torch(options.python, ranks, dtype, steps, mode, shards))
    speed = {layout: statistics.median(speeds) for layout, (speeds, *_) in mine.items()}
    for layout, (_, shares, peaks) in mine.items():
        yield (f"chorale, {layout}", speed[layout],
               f"MFU {statistics.median(shares):.0%} of {statistics.median(peaks):.0f} GFLOP/s", None)
    for name, _, shards in modes:
        yield f"PyTorch {version}, {name}", statistics.median(theirs[name]), "", speed[layouts[shards]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="an interpreter that can import torch")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--dtypes", default="bf16,f32")
    parser.add_argument("--ranks", default="1,2", help="1, 2 or both")
    parser.add_argument("--modes", default="eager,compiled")
    options = parser.parse_args()
    version = torch_version(options.python)
    print("| type | ranks | program | tokens/s | | chorale / this |\n|---|---|---|---|---|---|")
    for dtype in options.dtypes.split(","):
        for ranks in map(int, options.ranks.split(",")):
            for program, speed, note, same in rows(options, version, ranks, dtype):
                ratio = f"{same / speed:.2f}" if same else ""
                print(f"| {dtype} | {ranks} | {program} | {speed:.0f} | {note} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
