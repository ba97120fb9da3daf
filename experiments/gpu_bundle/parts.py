"""The parts of the bundle, in the order of execution. A part runs programs and returns two texts: result and figure."""
from dataclasses import dataclass
from typing import Callable

import checks
import speeds


@dataclass
class Part:
    name: str
    target: str
    least_seconds: int  # the part is left out if less time remains
    most_seconds: int  # the part's time limit in a run of ten minutes; it grows in longer runs
    body: Callable  # session → (result, figure)
    needs_gpu: bool = True
    needs_torch: bool = False


all_parts = [
    Part("environment", "driver 580 or newer", 1, 60, checks.environment, needs_gpu=False),
    Part("kernels", "all pass", 20, 150, checks.tests("[gpu]~[!benchmark]")),
    Part("losses", "within 1e-5 of the host's", 20, 150, checks.losses),
    Part("exact", "the host's bits on every layout of 1 to 4 ranks", 20, 120, checks.exact),
    Part("nccl-2", "all pass on 2 ranks", 15, 90, checks.tests("[spmd][nccl],[spmd][device]", ranks=2)),
    Part("nccl-4", "all pass on 4 ranks", 15, 90, checks.tests("[spmd][nccl],[spmd][device]", ranks=4)),
    Part("sanitizer", "no error", 20, 60, checks.sanitizer),
    Part("gpt2-124m", "as fast as PyTorch compiled", 60, 150, speeds.training("gpt2", "torch_gpt.py", 16), needs_torch=True),
    Part("llama-1b", "as fast as PyTorch compiled", 60, 180, speeds.training("llama-1b", "torch_llama.py", 4),
         needs_torch=True),
    Part("attention", "80 % of cuDNN", 15, 60, speeds.attention, needs_torch=True),
    Part("products", "95 % of cuBLAS in PyTorch", 15, 60, speeds.products, needs_torch=True),
    Part("bandwidth", "80 % of a copy", 15, 60, speeds.bandwidth),
]
