#!/usr/bin/python3
"""Times PyTorch's bf16 kernels on a GPU, with the shapes with which tests/math/cuda/kernels_benchmark.cpp times chorale's.

Attention is from cuDNN and matrix products are from cuBLAS. As in that benchmark, a kernel is enqueued 20 times between two
events, and the best of five such runs counts. The gradient of attention counts as 5/2 of the operations of attention.
Prints one line per kernel: name, TFLOP/s.

  torch_kernels.py             DEVICE=cpu tries the program without a GPU, on small shapes
"""
import os
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

device = os.environ.get("DEVICE", "cuda")
real = device == "cuda"
samples, tokens = (16, 1024) if real else (1, 64)


def now():
    if not real:
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def seconds_between(begun, ended):
    if not real:
        return ended - begun
    torch.cuda.synchronize()
    return begun.elapsed_time(ended) / 1000


def rate(operations, work):
    """Times a call that computes this many operations; returns TFLOP/s."""
    work()
    best = float("inf")
    for _ in range(5 if real else 1):
        begun = now()
        for _ in range(20 if real else 1):
            work()
        best = min(best, seconds_between(begun, now()) / (20 if real else 1))
    return operations / best / 1e12


def matrix(*shape):
    return torch.randn(*shape, device=device, dtype=torch.bfloat16)


def products():
    rows = samples * tokens
    side = 8192 if real else 64
    square = matrix(side, side)
    print(f"product of {side}³: {rate(2 * side**3, lambda: square @ square):.3f}")
    for name, k, n in (("qkv", 768, 2304), ("up", 768, 3072), ("down", 3072, 768), ("head", 768, 50304 if real else 512)):
        x, w, bias = matrix(rows, k), matrix(k, n), matrix(n)
        print(f"{name} {k} to {n}: {rate(2 * rows * k * n, lambda: torch.addmm(bias, x, w)):.3f}")


def attention():
    for heads, width in ((12, 64), (6, 128)):
        q, k, v, dout = (matrix(samples, heads, tokens, width).requires_grad_() for _ in range(4))
        operations = 2 * samples * tokens * tokens * heads * width
        forward = lambda: scaled_dot_product_attention(q, k, v, is_causal=True)
        out = forward()
        back = rate(2.5 * operations, lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True))
        with torch.no_grad():
            there = rate(operations, forward)
        print(f"attention {heads}×{width}: {there:.3f}\nattention {heads}×{width} gradient: {back:.3f}")


products()
if real:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        attention()
else:
    attention()
