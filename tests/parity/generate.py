#!/usr/bin/env python3
"""Golden training runs for tests/parity, made by PyTorch.

    zerolab_parity_initial /tmp/parity
    python3 tests/parity/generate.py /tmp/parity tests/golden/parity

Reads every initial state that zerolab wrote, trains it for as many steps as the file holds tokens
for, in fp32 and in float64, and writes losses and gradient norms. Needs torch, numpy and
safetensors; the build and the tests do not need this script.
"""
import datetime
import hashlib
import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors import safe_open

LR, WARMUP, BETAS, EPSILON, DECAY, CLIP = 3e-3, 10, (0.9, 0.95), 1e-8, 0.1, 1.0


class Decoder:
    """A GPT-2, Llama or Qwen2 over named tensors: linear weights are [out, in], qkv stacks the
    heads of q, k and v, and `up` stacks gate and up."""

    def __init__(self, weights, config):
        self.weights = weights
        self.gpt2 = config["family"] == "gpt2"
        for key in ("layers", "heads", "kv_heads", "head_size"):
            setattr(self, key, int(config[key]))
        self.epsilon, self.theta = float(config["norm_epsilon"]), float(config["rope_theta"])

    def linear(self, x, name):
        return F.linear(x, self.weights[name + ".weight"], self.weights.get(name + ".bias"))

    def norm(self, x, name):
        weight = self.weights[name + ".weight"]
        if self.gpt2:
            return F.layer_norm(x, weight.shape, weight, self.weights[name + ".bias"], self.epsilon)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * weight

    def rotate(self, x):
        half = x.shape[-1] // 2
        frequency = self.theta ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), frequency)
        cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        low, high = x[..., :half], x[..., half:]
        return torch.cat((low * cosine - high * sine, high * cosine + low * sine), -1)

    def attention(self, x, prefix):
        batch, sequence, _ = x.shape
        qkv = self.linear(x, prefix + "qkv")
        qkv = qkv.view(batch, sequence, -1, self.head_size).transpose(1, 2)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], 1)
        if not self.gpt2:
            q, k = self.rotate(q), self.rotate(k)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = q @ k.transpose(-2, -1) / self.head_size**0.5
        future = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)
        out = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        return self.linear(out.transpose(1, 2).flatten(2), prefix + "out")

    def mlp(self, x, prefix):
        up = self.linear(x, prefix + "up")
        if self.gpt2:
            return self.linear(F.gelu(up, approximate="tanh"), prefix + "down")
        gate, up = up.chunk(2, -1)
        return self.linear(F.silu(gate) * up, prefix + "down")

    def loss(self, tokens):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        x = self.weights["embedding.token"][inputs]
        if self.gpt2:
            x = x + self.weights["embedding.position"][: inputs.shape[1]]
        for layer in range(self.layers):
            prefix = f"blocks.{layer}."
            x = x + self.attention(self.norm(x, prefix + "norm1"), prefix + "attention.")
            x = x + self.mlp(self.norm(x, prefix + "norm2"), prefix + "mlp.")
        head = self.weights.get("head", self.weights["embedding.token"])
        logits = F.linear(self.norm(x, "final_norm"), head)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def learning_rate(step):
    """DeepSpeed's WarmupLR, linear, from 0: the first two steps run at the lowest rate."""
    return LR * min(max(step - 1, 0) / WARMUP, 1.0)


def train(initial, config, tokens, dtype):
    weights = {name: value.to(dtype).requires_grad_() for name, value in initial.items()}
    model = Decoder(weights, config)
    optimizer = torch.optim.AdamW(
        weights.values(), lr=LR, betas=BETAS, eps=EPSILON, weight_decay=DECAY, foreach=False)
    losses, norms = [], []
    for step, batch in enumerate(tokens):
        optimizer.param_groups[0]["lr"] = learning_rate(step)
        optimizer.zero_grad()
        loss = model.loss(batch)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(weights.values(), CLIP).item())
        losses.append(loss.item())
        optimizer.step()
    return losses, norms


def largest_relative(a, b):
    return max(abs(x - y) / abs(y) for x, y in zip(a, b))


def read(path):
    with safe_open(path, "pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}
        return weights, weights.pop("tokens").long(), file.metadata()


def main(source, target):
    torch.set_num_threads(1)
    for path in sorted(pathlib.Path(source).glob("*.safetensors")):
        initial, tokens, config = read(path)
        losses, norms = train(initial, config, tokens, torch.float32)
        exact_losses, exact_norms = train(initial, config, tokens, torch.float64)
        golden = {
            "model": path.stem,
            "initial_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "loss": losses,
            "grad_norm": norms,
            "loss_float64": exact_losses,
            "grad_norm_float64": exact_norms,
        }
        out = pathlib.Path(target) / (path.stem + ".json")
        out.write_text(json.dumps(golden, indent=1) + "\n")
        print(f"{out}: loss {losses[0]:.6f} -> {losses[-1]:.6f}, norm {norms[0]:.4f} -> "
              f"{norms[-1]:.4f}; fp32 against float64: loss "
              f"{largest_relative(losses, exact_losses):.1e}, norm "
              f"{largest_relative(norms, exact_norms):.1e}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
