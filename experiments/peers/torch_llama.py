#!/usr/bin/python3
"""Trains a Llama in compiled PyTorch on one GPU, with fused AdamW and bfloat16 autocast, as a reference for chorale's speed.

The shape is chorale's preset `llama-1b` (16 layers, 2048 wide, 32 heads in 8 groups, 8192 in the MLP, 2048 tokens,
vocabulary 128256, tied head). Prints the median step time and tokens/s, as torch_gpt.py does.

  ./torch_llama.py        B, STEPS, LAYERS, WIDTH, HEADS, QUERY_GROUPS, FFN, TOKENS, WORDS override the shape;
                          DEVICE=cpu needs no GPU
"""
import os
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

env = lambda name, value: int(os.environ.get(name, value))
layers, width, heads, groups = env("LAYERS", 16), env("WIDTH", 2048), env("HEADS", 32), env("QUERY_GROUPS", 8)
ffn, tokens, words, batch, steps = env("FFN", 8192), env("TOKENS", 2048), env("WORDS", 128256), env("B", 4), env("STEPS", 20)
device = os.environ.get("DEVICE", "cuda")
head = width // heads
torch.manual_seed(0)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (width,), self.gain, 1e-5)


def turned(x, cosines, sines):
    """Applies rotary positions: rotates pairs of elements, one from each half of a head."""
    first, second = x.chunk(2, -1)
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines), -1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        line = lambda a, b: nn.Linear(a, b, bias=False)
        self.before, self.between = Norm(), Norm()
        self.q, self.k, self.v = line(width, width), line(width, groups * head), line(width, groups * head)
        self.out = line(width, width)
        self.gate, self.up, self.down = line(width, ffn), line(width, ffn), line(ffn, width)

    def forward(self, x, cosines, sines):
        b, t, _ = x.shape
        n = self.before(x)
        q = self.q(n).view(b, t, heads, head).transpose(1, 2)
        k, v = (f(n).view(b, t, groups, head).transpose(1, 2) for f in (self.k, self.v))
        q, k = turned(q, cosines, sines).to(v.dtype), turned(k, cosines, sines).to(v.dtype)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, width))
        n = self.between(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(words, width), Norm()
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)
        angles = torch.outer(torch.arange(tokens), 500000.0 ** (-torch.arange(0, head, 2) / head))
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def forward(self, x, y):
        h = self.table(x)
        for block in self.blocks:
            h = block(h, self.cosines, self.sines)
        return F.cross_entropy(F.linear(self.norm(h), self.table.weight).float().view(-1, words), y.view(-1))


model = Llama().to(device)
count = sum(parameter.numel() for parameter in model.parameters())
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=device == "cuda")
step = torch.compile(model) if device == "cuda" else model
wait = torch.cuda.synchronize if device == "cuda" else lambda: None
x, y = (torch.randint(0, words, (batch, tokens), device=device) for _ in range(2))
seconds = []
for _ in range(steps):
    began = time.perf_counter()
    optimizer.zero_grad()
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = step(x, y)
    loss.backward()
    optimizer.step()
    wait()
    seconds.append(time.perf_counter() - began)
median = statistics.median(seconds[2:])
print(f"torch {torch.__version__} params={count / 1e6:.2f}M step={median * 1e3:.0f}ms "
      f"tokens/s={batch * tokens / median:.0f} "
      f"loss={loss.item():.3f}")
