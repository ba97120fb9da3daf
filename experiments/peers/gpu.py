#!/usr/bin/python3
"""One GPU: training GPT-2 124M in bf16, Chorale's and PyTorch's (torch_gpt.py: compiled, flash attention, fused AdamW) taking turns, and attention
alone beside cuDNN's.

  experiments/peers/gpu.py [--turns 3] [--steps 20] [--batch 16] [--python a Python whose PyTorch has CUDA] [--dry-run]

Prints the tables of experiments/findings/gpu.md: medians over all turns. --dry-run prints the commands instead.
"""
import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
vocabulary = 50304  # GPT-2's, up to a multiple of 128: both sides' products are faster so
attention_shapes = [(12, 64), (6, 128)]  # heads, their width; 16 samples of 1024 tokens


def ours(options, folder):
    return [os.path.join(root, "build/chorale"), "train", "--device", "cuda", "--preset", "gpt2", "--vocab-size", str(vocabulary), "--dtype",
            "bf16", "--global-batch-size", str(options.batch), "--train-iters", str(options.steps), "--eval-samples", "1", "--no-save",
            "--run-dir", folder]


def theirs(options):
    shape = dict(L=12, D=768, H=12, T=1024, V=vocabulary, B=options.batch, STEPS=options.steps, DEVICE="cuda")
    return ["env", *(f"{name}={value}" for name, value in shape.items()), options.python, os.path.join(here, "torch_gpt.py")]


our_kernels = [os.path.join(root, "build/tests_run"), "[gpu][!benchmark]"]


def their_attention(options):
    return [options.python, os.path.abspath(__file__), "--cudnn"]


def run(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def our_speed(options):
    """Tokens/s of each step but the first five."""
    with tempfile.TemporaryDirectory() as folder:
        run(ours(options, folder))
        with open(os.path.join(folder, "latest", "metrics.jsonl")) as lines:
            return [row["tokens_per_s"] for row in map(json.loads, lines) if "tokens_per_s" in row][5:]


def cudnn():
    """In a process of its own: TFLOP/s of cuDNN's attention and of its gradient, by the operations of kernels_benchmark.cpp."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def seconds(work):
        work()
        best = float("inf")
        for _ in range(5):
            begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begun.record()
            for _ in range(20):
                work()
            ended.record()
            torch.cuda.synchronize()
            best = min(best, begun.elapsed_time(ended) / 1000 / 20)
        return best

    for heads, width in attention_shapes:
        q, k, v, dout = (torch.randn(16, heads, 1024, width, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(4))
        operations = 2 * 16 * 1024 * 1024 * heads * width
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            forward = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            out = forward()
            back = seconds(lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True))
            with torch.no_grad():
                there = seconds(forward)
        print(f"attention {heads}×{width} {operations / there / 1e12:.1f} {2.5 * operations / back / 1e12:.1f}")


def attention_of(text):
    """TFLOP/s of our attention and of its gradient, from the benchmark's lines."""
    found = re.findall(r"attention (\d+)×(\d+) .*? us +([\d.]+) GFLOP/s.*\n.*gradient.*? us +([\d.]+) GFLOP/s", text)
    return {(int(heads), int(width)): (float(there) / 1000, float(back) / 1000) for heads, width, there, back in found}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--cudnn", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cudnn:
        return cudnn()
    if options.dry_run:
        for command in (ours(options, "runs"), theirs(options), our_kernels, their_attention(options)):
            print(shlex.join(command))
        return
    mine, peer = [], []
    for _ in range(options.turns):
        mine += our_speed(options)
        peer.append(float(re.search(r"tokens/s=(\d+)", run(theirs(options))).group(1)))
    our_rate, their_rate = statistics.median(mine), statistics.median(peer)
    print(f"| ours, tokens/s | PyTorch, tokens/s | times as fast |\n|---|---|---|\n| {our_rate:.0f} | {their_rate:.0f} | {our_rate / their_rate:.2f} |\n")
    kernels = run(our_kernels)
    print(kernels)
    own = attention_of(kernels)
    print("| attention, heads × width | ours, TFLOP/s | cuDNN | its gradient, ours | cuDNN |\n|---|---|---|---|---|")
    for heads, width, there, back in re.findall(r"attention (\d+)×(\d+) ([\d.]+) ([\d.]+)", run(their_attention(options))):
        forward, backward = own[int(heads), int(width)]
        print(f"| {heads} × {width} | {forward:.1f} | {there} | {backward:.1f} | {back} |")


if __name__ == "__main__":
    main()
