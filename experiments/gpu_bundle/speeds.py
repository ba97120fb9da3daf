"""Parts that time the device. Chorale and PyTorch take turns, so that both run at the same clock rates."""
import re
import statistics
import time

from checks import held
from machine import Failure

turns = 3  # maximum number of turns; fewer if the part's time is too short
steps = "20"
# Both programs use GPT-2's vocabulary, rounded up to a multiple of 128. torch_llama.py has the shape of llama-1b built in.
shapes = {"gpt2": (["--vocab-size", "50304"], {"L": "12", "D": "768", "H": "12", "T": "1024", "V": "50304"}),
          "llama-1b": ([], {})}


def training(preset, peer, batch):
    """Compares the tokens/s of chorale and of compiled PyTorch for training in bf16."""
    def body(session):
        shape, same = shapes[preset]
        words = ["--preset", preset, *shape, "--dtype", "bf16", "--global-batch-size", str(batch), "--train-iters", steps,
                 "--eval-samples", "1", "--no-save"]
        mine, peers = [], []
        longest = 0.0
        for turn in range(turns):
            began = time.monotonic()
            if turn and began + longest > session.part_ends:
                break
            mine += session.column(session.train("cuda", words), "tokens_per_s")[5:]
            said = session.peer(peer, DEVICE="cuda", B=str(batch), STEPS=steps, **same)
            peers.append(float(re.search(r"tokens/s=(\d+)", said)[1]))
            longest = max(longest, time.monotonic() - began)
        ours, theirs = statistics.median(mine), statistics.median(peers)
        return held(ours >= theirs, f"{ours:.0f} tokens/s, PyTorch {theirs:.0f}: {ours / theirs:.2f} times")
    return body


def benchmark(session, case):
    """Reads the rows of kernels_benchmark.cpp: name, rate in 10⁹ units, unit, percent. The row of a gradient
    follows the row of its kernel."""
    text = session.run([session.path("build/tests_run"), f"device: {case}*"])
    rows = re.findall(r"^(.{28}) +[\d.]+ us +([\d.]+) (GB/s|GFLOP/s) +(\d+) %$", text, re.MULTILINE)
    if not rows:
        raise Failure("the benchmark printed no rates")
    named, kernel = [], ""
    for name, rate, unit, share in rows:
        kernel = name.strip() if not name.startswith(" ") else kernel
        named.append((kernel if not name.startswith(" ") else f"{kernel} gradient", float(rate), unit, int(share)))
    return named


def beside_torch(session, kernels, share):
    """Compares the TFLOP/s of chorale and PyTorch for kernels with these prefixes. The best of two turns counts."""
    mine, peers = {}, {}
    for _ in range(2):
        for name, rate, _, _ in benchmark(session, "products and attention"):
            mine[name] = max(rate / 1000, mine.get(name, 0))
        for name, rate in re.findall(r"^(.+): ([\d.]+)$", session.peer("torch_kernels.py"), re.MULTILINE):
            peers[name] = max(float(rate), peers.get(name, 0))
    both = [name for name in mine if name in peers and name.startswith(kernels)]
    if not both:
        raise Failure(f"no kernel has the same name on both sides: {', '.join(mine)}; {', '.join(peers)}")
    rows = [f"{name} {mine[name]:.0f} to {peers[name]:.0f}" for name in both]
    return held(all(mine[name] >= share * peers[name] for name in both), f"TFLOP/s, ours to theirs: {', '.join(rows)}")


def attention(session):
    return beside_torch(session, ("attention",), 0.8)


def products(session):
    return beside_torch(session, ("product", "qkv", "up", "down", "head"), 0.95)


def bandwidth(session):
    moved = [(name, share) for name, _, unit, share in benchmark(session, "memory-bound") if unit == "GB/s"]
    copy, kernels = moved[0], sorted(moved[1:], key=lambda row: row[1])
    middle = statistics.median(share for _, share in kernels)
    return held(middle >= 80, f"median {middle:.0f} % of a copy; lowest {kernels[0][0]}, {kernels[0][1]} %")
