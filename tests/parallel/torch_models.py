"""PyTorch implementations of GPT-2, Llama, Mixtral and Qwen3-MoE, as the reference for Chorale's models.

Parameters have the same names and shapes as in Hugging Face model folders.

The code follows the published architectures. It uses the tensors of a folder unchanged. So only Chorale's exporter, which
is under test, converts tensors."""
import json, math, os, struct

import numpy
import torch
import torch.nn.functional as F

TYPES = {"F64": numpy.float64, "F32": numpy.float32, "F16": numpy.float16, "I64": numpy.int64, "I32": numpy.int32}


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[slice(*t["data_offsets"])], TYPES[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items()}


def read_folder(folder):
    """Returns the configuration, and a dict of torch parameters by tensor name."""
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    tensors = read_safetensors(os.path.join(folder, "model.safetensors"))
    return config, {n.removeprefix("transformer."): torch.nn.Parameter(torch.tensor(t)) for n, t in tensors.items()}


def causal(q, k, v):
    """Plain causal attention for tensors [batch, heads, tokens, width]. The function computes the full score matrix."""
    t = q.shape[-2]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(torch.triu(torch.ones(t, t, dtype=torch.bool), 1), float("-inf"))
    return torch.softmax(scores, -1) @ v


def heads(x, n):
    b, t, _ = x.shape
    return x.view(b, t, n, -1).transpose(1, 2)


def joined(x):
    b, n, t, d = x.shape
    return x.transpose(1, 2).reshape(b, t, n * d)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gpt2(config, p, ids):
    h, eps, n = config["n_embd"], config["layer_norm_epsilon"], config["n_head"]
    norm = lambda x, name: F.layer_norm(x, (h,), p[name + ".weight"], p[name + ".bias"], eps)
    dense = lambda x, name: x @ p[name + ".weight"] + p[name + ".bias"]
    x = p["wte.weight"][ids] + p["wpe.weight"][: ids.shape[1]]
    for i in range(config["n_layer"]):
        q, k, v = dense(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(h, -1)
        x = x + dense(joined(causal(heads(q, n), heads(k, n), heads(v, n))), f"h.{i}.attn.c_proj")
        x = x + dense(gelu(dense(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")), f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ p.get("lm_head.weight", p["wte.weight"]).T


def rotated(x, base):
    t, d = x.shape[-2], x.shape[-1]
    angle = torch.arange(t, dtype=x.dtype)[:, None] * base ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    low, high = x[..., : d // 2], x[..., d // 2 :]
    return x * cos + torch.cat([-high, low], -1) * sin


def experts(config, p, layer, x, routers):
    """Every expert computes every token. An expert that a token did not choose has weight zero for this token."""
    mixtral = config["model_type"] == "mixtral"
    block = layer + ("block_sparse_moe." if mixtral else "mlp.")
    gate, up, down = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    scores = x @ p[block + "gate.weight"].T
    routers.append(scores)
    weights, chosen = torch.softmax(scores, -1).topk(config["num_experts_per_tok"], -1)
    if config.get("norm_topk_prob", True):
        weights = weights / weights.sum(-1, keepdim=True)
    weights = torch.zeros_like(scores).scatter(-1, chosen, weights)
    y = torch.zeros_like(x)
    for e in range(scores.shape[-1]):
        a, b, c = (p[f"{block}experts.{e}.{name}.weight"] for name in (gate, up, down))
        y = y + weights[..., e : e + 1] * ((F.silu(x @ a.T) * (x @ b.T)) @ c.T)
    return y


def balance_loss(config, scores):
    """Returns E·Σ f·P (docs/architecture/model.md) for each sequence of `scores`, summed over the sequences."""
    probabilities = torch.softmax(scores, -1)
    chosen = probabilities.topk(config["num_experts_per_tok"], -1).indices
    shares = F.one_hot(chosen, scores.shape[-1]).to(scores.dtype).mean((1, 2))
    return scores.shape[-1] * (shares * probabilities.mean(1)).sum()


def router_losses(config, routers, balance, z):
    """Returns the contribution of the balance loss and the z-loss to the summed loss."""
    return sum(balance * scores.shape[1] * balance_loss(config, scores) + z * torch.logsumexp(scores, -1).square().sum()
               for scores in routers)


def llama(config, p, ids, routers):
    """Llama, Mixtral and Qwen3-MoE. For each block with experts, appends the router logits [sequences, tokens, E] to
    `routers`."""
    n, groups, eps = config["num_attention_heads"], config["num_key_value_heads"], config["rms_norm_eps"]
    norm = lambda x, name: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * p[name + ".weight"]
    dense = lambda x, name: x @ p[name + ".weight"].T
    x = p["model.embed_tokens.weight"][ids]
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        y = norm(x, layer + "input_layernorm")
        q, k, v = (heads(dense(y, f"{layer}self_attn.{w}_proj"), m) for w, m in (("q", n), ("k", groups), ("v", groups)))
        if layer + "self_attn.q_norm.weight" in p:
            q, k = norm(q, layer + "self_attn.q_norm"), norm(k, layer + "self_attn.k_norm")
        q, k = rotated(q, config["rope_theta"]), rotated(k, config["rope_theta"])
        k, v = (w.repeat_interleave(n // groups, 1) for w in (k, v))
        x = x + dense(joined(causal(q, k, v)), layer + "self_attn.o_proj")
        y = norm(x, layer + "post_attention_layernorm")
        if layer + "mlp.gate_proj.weight" not in p:
            x = x + experts(config, p, layer, y, routers)
            continue
        x = x + dense(F.silu(dense(y, layer + "mlp.gate_proj")) * dense(y, layer + "mlp.up_proj"), layer + "mlp.down_proj")
    return norm(x, "model.norm") @ p.get("lm_head.weight", p["model.embed_tokens.weight"]).T


def logits(config, parameters, ids, routers=None):
    if config["model_type"] == "gpt2":
        return gpt2(config, parameters, ids)
    return llama(config, parameters, ids, [] if routers is None else routers)
