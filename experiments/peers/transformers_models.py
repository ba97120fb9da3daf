#!/usr/bin/env python3
"""Compares mixture-of-experts models with Hugging Face's transformers: gradients in f64, and files in both directions.

  TEST_FOLDER=FOLDER build/tests_run "[torch]"              trains chorale's models, and writes weights and gradients
  experiments/peers/transformers_models.py FOLDER CHORALE   CHORALE: the program, build/chorale

For every model with experts in FOLDER, transformers loads chorale's weights. Then transformers computes the loss of
chorale's first batch, sequence by sequence, and the gradients of this loss. The balance loss is computed by
load_balancing_loss_func of transformers. For one block of experts and one sequence, this loss equals chorale's balance loss.
Models with a z-loss are skipped, because transformers lacks it. Then transformers writes random models in every form that
it supports: as one file, as shards, and with joined experts. `CHORALE export` must convert each model to bit-identical
tensors, from which transformers must compute the same logits.

Needs torch and transformers 5, which computes norms, the router's softmax and rotary angles in f32 even in
an f64 model. `doubles` replaces these conversions while it is active, so that both programs compute in f64.
"""
import contextlib
import glob
import json
import os
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, MixtralConfig, Qwen3MoeConfig

limit = 1e-5  # largest relative difference of a tensor


@contextlib.contextmanager
def doubles():
    """While this context manager is active, conversions to f32 leave f64 tensors unchanged."""
    to, softmax, single = torch.Tensor.to, torch.nn.functional.softmax, torch.Tensor.float
    wide = lambda x: x.dtype == torch.float64

    def converted(self, *args, **kwargs):
        if wide(self) and (torch.float32 in args or kwargs.get("dtype") == torch.float32):
            return self
        return to(self, *args, **kwargs)

    def normalized(x, dim=None, dtype=None, **kwargs):
        return softmax(x, dim=dim, dtype=None if wide(x) else dtype, **kwargs)

    torch.Tensor.to, torch.nn.functional.softmax = converted, normalized
    torch.Tensor.float = lambda self, *args, **kwargs: self if wide(self) else single(self, *args, **kwargs)
    try:
        yield
    finally:
        torch.Tensor.to, torch.nn.functional.softmax, torch.Tensor.float = to, softmax, single


class Turns(torch.nn.Module):
    """Computes the cosines and sines of the rotary angles in f64."""

    def __init__(self, config):
        super().__init__()
        d = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        parameters = getattr(config, "rope_parameters", None) or {"rope_theta": config.rope_theta}
        self.frequencies = parameters["rope_theta"] ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)

    def forward(self, x, position_ids, **_):
        angles = position_ids[..., None].to(torch.float64) * self.frequencies
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()


def parts(name, tensor):
    """Splits a tensor with all experts (transformers 5) into tensors of single experts. Returns other tensors unchanged."""
    stem = name.removesuffix("mlp.experts.gate_up_proj").removesuffix("mlp.experts.down_proj")
    if stem == name:
        return {name: tensor}
    up = name.endswith("gate_up_proj")
    found = {}
    for e, matrix in enumerate(tensor):
        half = matrix.shape[0] // 2
        if up:
            found[f"{stem}mlp.experts.{e}.gate_proj.weight"] = matrix[:half]
            found[f"{stem}mlp.experts.{e}.up_proj.weight"] = matrix[half:]
        else:
            found[f"{stem}mlp.experts.{e}.down_proj.weight"] = matrix
    return found


def common_name(name):
    """Translates Mixtral's tensor names into Qwen3-MoE's names."""
    if ".block_sparse_moe." not in name:
        return name
    for theirs, common in ((".w1.", ".gate_proj."), (".w3.", ".up_proj."), (".w2.", ".down_proj.")):
        name = name.replace(theirs, common)
    return name.replace(".block_sparse_moe.", ".mlp.")


def gradients(folder, numbers):
    config = AutoConfig.from_pretrained(folder)
    config.output_router_logits = True
    model = AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=torch.float64, attn_implementation="eager",
                                                 experts_implementation="eager")
    model.model.rotary_emb = Turns(config)
    length = len(numbers["text"])
    step = numbers["steps"][0]
    loss = 0
    with doubles():
        for ids, targets in zip(*(torch.tensor(step[key]).view(-1, length) for key in ("ids", "targets"))):
            out = model(input_ids=ids[None])
            ours = torch.nn.functional.cross_entropy(out.logits[0], targets, ignore_index=-1, reduction="sum")
            loss += ours.item()
            (ours + length * config.router_aux_loss_coef * out.aux_loss).backward()
    found = {}
    for name, p in model.named_parameters():
        found.update(parts(name, p.grad))
    return loss / step["tokens"], {common_name(name): gradient for name, gradient in found.items()}


def compare_gradients(folder):
    with open(f"{folder}/numbers.json") as file:
        numbers = json.load(file)
    if numbers["z"] != 0:
        return
    loss, theirs = gradients(f"{folder}/start", numbers)
    ours = {common_name(n): t for n, t in load_file(f"{folder}/gradient-0/model.safetensors").items()}
    assert set(ours) == set(theirs), set(ours) ^ set(theirs)
    off = {name: ((ours[name] - theirs[name]).norm() / theirs[name].norm()).item() for name in ours}
    worst = max(off, key=off.get)
    print(f"{os.path.basename(folder)}: {len(off)} gradients, balance loss {numbers['balance']}: loss differs by "
          f"{abs(loss - numbers['steps'][0]['loss']) / loss:.1e}, gradients by {off[worst]:.1e} at most ({worst})")
    assert off[worst] <= limit, off


def random_models():
    shape = dict(vocab_size=48, hidden_size=24, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                 max_position_embeddings=16, num_experts_per_tok=2)
    yield "mixtral", MixtralConfig(intermediate_size=12, num_local_experts=4, **shape)
    qwen = dict(intermediate_size=20, moe_intermediate_size=12, num_experts=4, **shape)
    yield "qwen3_moe", Qwen3MoeConfig(head_dim=8, decoder_sparse_step=2, norm_topk_prob=True, **qwen)
    yield "qwen3_moe with dense blocks", Qwen3MoeConfig(mlp_only_layers=[0, 2], norm_topk_prob=False, **qwen)


def compare_files(chorale):
    ids = torch.arange(16)[None] * 7 % 48
    for name, config in random_models():
        torch.manual_seed(1)
        config.bos_token_id = config.eos_token_id = None
        model = AutoModelForCausalLM.from_config(config).eval()
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            forms = {"one": {}, "shards": {"max_shard_size": "20KB"}, "joined": {"save_original_format": False}}
            for form, options in forms.items():
                model.save_pretrained(f"{folder}/{form}", **options)
                out = f"{folder}/{form}-out"
                words = [chorale, "export", "--load", f"{folder}/{form}", "--out", out]
                subprocess.run(words, check=True, capture_output=True)
                theirs, ours = (load_file(f"{at}/model.safetensors") for at in (f"{folder}/one", out))
                assert theirs.keys() == ours.keys() and all(torch.equal(theirs[n], ours[n]) for n in ours), form
                back = AutoModelForCausalLM.from_pretrained(out).eval()
                assert torch.equal(back(ids).logits, model(ids).logits), form
            print(f"{name}: {len(ours)} tensors from {', '.join(forms)} have the same bits, and give the same logits")


if __name__ == "__main__":
    for place in sorted(glob.glob(f"{sys.argv[1]}/*")):
        with open(f"{place}/start/config.json") as file:
            if json.load(file)["model_type"] in ("mixtral", "qwen3_moe"):
                compare_gradients(place)
    compare_files(sys.argv[2])
