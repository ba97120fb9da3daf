#!/usr/bin/python3
"""Times the preset nano under layouts of several ranks, and PyTorch's DistributedDataParallel on two ranks (torch_gpt.py).
The runs take turns, so that other load on the machine affects all of them.

  experiments/peers/parallel.py [--turns 3] [--steps 12] [--dtype bf16] [--layouts dp1,dp2,tp2,…] [--no-peer]

Prints the table for experiments/findings/parallel.md: the median tokens/s over all steps of all turns, and the ratios of
this speed to twice the speed of one rank and to the speed of dp2.
"""
import argparse
import math
import os
import re
import statistics
import subprocess

import runs


def ranks_of(layout):
    sizes = [int(size) for size in re.findall(r"(?:dp|tp|pp)(\d+)", layout)]
    return math.prod(sizes)


def ours(layout, dtype, steps):
    """Returns the tokens/s of all steps but the first two. The batch is 8 sequences on one or two ranks, else 4 per rank."""
    ranks = ranks_of(layout)
    start = lambda *words: subprocess.run(["mpirun", "-np", str(ranks), *words], check=True, capture_output=True, text=True,
                                          env={**os.environ, **runs.as_root})
    _, rows = runs.train(start, layout, dtype, max(8, 4 * ranks), steps)
    return [row["tokens_per_s"] for row in rows]


def torch(dtype, steps):
    start = lambda rank: subprocess.Popen(
        [os.path.join(runs.here, "torch_gpt.py")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "AMP": str(int(dtype == "bf16")), "STEPS": str(steps), "B": "4",
             "WORLD_SIZE": "2", "RANK": str(rank)})
    outputs = [process.communicate()[0] for process in [start(0), start(1)]]
    return [float(re.search(r"tokens/s=(\d+)", "".join(outputs)).group(1))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--layouts", default="dp1,dp2,tp2,tp2.sp,pp2,dp2.z1,dp2.z2,dp2.z3,dp8")
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    layouts = options.layouts.split(",")
    seen = {layout: [] for layout in layouts}
    peer = []
    for _ in range(options.turns):
        for layout in layouts:
            seen[layout] += ours(layout, options.dtype, options.steps)
        peer += [] if options.no_peer else torch(options.dtype, options.steps)
    speed = {layout: statistics.median(rates) for layout, rates in seen.items()}
    one, two = speed.get("dp1"), speed.get("dp2")
    print("| layout | tokens/s | relative to twice one rank | relative to dp2 | slowest step / median |\n"
          "|---|---|---|---|---|")
    for layout in layouts:
        share = lambda whole: f"{speed[layout] / whole:.0%}" if whole else ""
        print(f"| {layout} | {speed[layout]:.0f} | {share(one and 2 * one)} | {share(two)} | "
              f"{speed[layout] / min(seen[layout]):.2f} |")
    if peer:
        print(f"| PyTorch, DDP, 2 ranks | {statistics.median(peer):.0f} | | "
              f"{f'1 / {two / statistics.median(peer):.2f}' if two else ''} | |")


if __name__ == "__main__":
    main()
