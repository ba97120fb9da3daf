#!/usr/bin/python3
"""Times training of the preset nano on one core. Chorale and PyTorch (torch_gpt.py) take turns, so that other load on the
machine affects both.

  experiments/peers/train.py [--turns 3] [--steps 10] [--dtypes bf16,f32]

Prints the table of experiments/findings/training.md: medians over all turns.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))


def ours(dtype, steps):
    """Returns tokens/s and MFU of all steps but the first two, and the measured peak of matrix products in GFLOP/s."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [os.path.join(root, "build/chorale"), "train", "--preset", "nano", "--dtype", dtype, "--train-iters", str(steps),
             "--threads", "1", "--eval-samples", "1", "--run-dir", folder],
            check=True, capture_output=True, text=True)
        with open(os.path.join(folder, "latest", "metrics.jsonl")) as lines:
            rows = [row for row in map(json.loads, lines) if "tokens_per_s" in row][2:]
        peak = float(re.search(r"products reach (\d+) GFLOP/s", result.stderr + result.stdout).group(1))
        return [row["tokens_per_s"] for row in rows], [row["mfu"] for row in rows], peak


def torch(dtype, steps):
    result = subprocess.run([os.path.join(here, "torch_gpt.py")], check=True, capture_output=True, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": "1", "AMP": str(int(dtype == "bf16")),
                                 "STEPS": str(steps)})
    return float(re.search(r"tokens/s=(\d+)", result.stdout).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--dtypes", default="bf16,f32")
    options = parser.parse_args()
    print("| type | ours, tokens/s | MFU | peak of products, GFLOP/s | PyTorch, tokens/s | speed-up |\n"
          "|---|---|---|---|---|---|")
    for dtype in options.dtypes.split(","):
        speed, share, peaks, theirs = [], [], [], []
        for _ in range(options.turns):
            tokens, mfu, peak = ours(dtype, options.steps)
            speed += tokens
            share += mfu
            peaks.append(peak)
            theirs.append(torch(dtype, options.steps if dtype == "bf16" else 3))  # PyTorch needs 40 s per step in f32
        mine, peer = statistics.median(speed), statistics.median(theirs)
        print(f"| {dtype} | {mine:.0f} | {statistics.median(share):.0%} | {statistics.median(peaks):.0f} | {peer:.0f} | "
              f"{mine / peer:.2f} |",
              flush=True)


if __name__ == "__main__":
    main()
