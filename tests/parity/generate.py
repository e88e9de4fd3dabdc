#!/usr/bin/env python3
"""Golden training runs for tests/parity, made by PyTorch.

    mkdir /tmp/parity && ZL_PARITY_WEIGHTS=/tmp/parity build/tests/test_parity
    python3 tests/parity/generate.py /tmp/parity tests/golden/parity [NAME...]

Trains from the initial weights that test_parity wrote, in fp32 and in float64, on the tokens and
by the recipe of parity_test.cpp, and writes losses and gradient norms: of each family with AdamW,
and as `optimizers` of gpt2 with others. NAME: only these goldens. Needs torch, numpy and
safetensors; the build and the tests do not need this script.
"""
import datetime
import hashlib
import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from optimizers import Lamb, OnebitAdam

# As in parity_test.cpp.
STEPS, BATCH, LENGTH, VOCAB, LAYERS, HEADS, HEAD_SIZE = 50, 4, 32, 97, 3, 4, 16
KV_HEADS = {"gpt2": 4, "llama": 2, "llama3": 2, "qwen2": 2}
NORM_EPSILON, THETA = 1e-5, 10000.0
FACTOR, LOW_FREQ, HIGH_FREQ, ORIGINAL = 8.0, 0.5, 2.0, 16  # of llama3's rotary positions
LR, WARMUP, BETAS, EPSILON, DECAY, CLIP = 1e-3, 10, (0.9, 0.95), 1e-8, 0.1, 1.0
# Of the other optimizers: constant rates, their own decay; 1-bit Adam does not clip.
OTHER_STEPS, OTHER_DECAY, FREEZE_STEP = 30, 0.01, 8
RATES = {"sgd": 0.05, "nesterov": 0.05, "lamb": 1e-2, "onebit_adam": 1e-3}
MOMENTUM = 0.9


def stretched(frequency):
    """Llama 3.1's rotary frequencies (Grattafiori et al. 2024)."""
    length = 2 * torch.pi / frequency
    smooth = ((ORIGINAL / length - LOW_FREQ) / (HIGH_FREQ - LOW_FREQ)).clamp(0, 1)
    return frequency * (smooth + (1 - smooth) / FACTOR)


class Decoder:
    """A GPT-2, Llama or Qwen2 over named tensors: linear weights are [out, in], qkv stacks the
    heads of q, k and v, and `up` stacks gate and up."""

    def __init__(self, weights, family):
        self.weights, self.gpt2, self.kv_heads = weights, family == "gpt2", KV_HEADS[family]
        self.stretched = family == "llama3"

    def linear(self, x, name):
        return F.linear(x, self.weights[name + ".weight"], self.weights.get(name + ".bias"))

    def norm(self, x, name):
        weight = self.weights[name + ".weight"]
        if self.gpt2:
            return F.layer_norm(x, weight.shape, weight, self.weights[name + ".bias"], NORM_EPSILON)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + NORM_EPSILON) * weight

    def rotate(self, x):
        half = x.shape[-1] // 2
        frequency = THETA ** (-torch.arange(half, dtype=torch.float64) / half)
        if self.stretched:
            frequency = stretched(frequency)
        angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), frequency)
        cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        low, high = x[..., :half], x[..., half:]
        return torch.cat((low * cosine - high * sine, high * cosine + low * sine), -1)

    def attention(self, x, prefix):
        batch, sequence, _ = x.shape
        qkv = self.linear(x, prefix + "qkv")
        qkv = qkv.view(batch, sequence, -1, HEAD_SIZE).transpose(1, 2)
        q, k, v = qkv.split([HEADS, self.kv_heads, self.kv_heads], 1)
        if not self.gpt2:
            q, k = self.rotate(q), self.rotate(k)
        group = HEADS // self.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = q @ k.transpose(-2, -1) / HEAD_SIZE**0.5
        future = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)
        out = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        return self.linear(out.transpose(1, 2).flatten(2), prefix + "out")

    def mlp(self, x, prefix):
        up = self.linear(x, prefix + "up")
        if self.gpt2:
            return self.linear(F.gelu(up, approximate="tanh"), prefix + "down")
        gate, up = up.chunk(2, -1)
        return self.linear(F.silu(gate) * up, prefix + "down")

    def logits(self, tokens):
        inputs = tokens[:, :-1]
        x = self.weights["embedding.token"][inputs]
        if self.gpt2:
            x = x + self.weights["embedding.position"][: inputs.shape[1]]
        for layer in range(LAYERS):
            prefix = f"blocks.{layer}."
            x = x + self.attention(self.norm(x, prefix + "norm1"), prefix + "attention.")
            x = x + self.mlp(self.norm(x, prefix + "norm2"), prefix + "mlp.")
        head = self.weights.get("head", self.weights["embedding.token"])
        return F.linear(self.norm(x, "final_norm"), head)

    def loss(self, tokens):
        return F.cross_entropy(self.logits(tokens).flatten(0, 1), tokens[:, 1:].flatten())


def tokens_of(step):
    row = torch.arange(BATCH)[:, None]
    position = torch.arange(LENGTH + 1)[None]
    return (step * 31 + row * 17 + position * (1 + row % 3) + position * position // 7) % VOCAB


def learning_rate(step):
    """DeepSpeed's WarmupLR, linear, from 0: the first two steps run at the lowest rate."""
    return LR * min(max(step - 1, 0) / WARMUP, 1.0)


def train(initial, family, dtype):
    weights = {name: value.to(dtype, copy=True).requires_grad_() for name, value in initial.items()}
    model = Decoder(weights, family)
    optimizer = torch.optim.AdamW(
        weights.values(), lr=LR, betas=BETAS, eps=EPSILON, weight_decay=DECAY, foreach=False)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = learning_rate(step)
        optimizer.zero_grad()
        loss = model.loss(tokens_of(step))
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(weights.values(), CLIP).item())
        losses.append(loss.item())
        optimizer.step()
    return losses, norms


def gradients_of(model, tokens):
    weights = model.weights
    loss = model.loss(tokens)
    return loss.item(), dict(zip(weights, torch.autograd.grad(loss, list(weights.values()))))


def norm_of(gradients):
    return sum(g.square().sum() for g in gradients.values()).sqrt().item()


def average(values):
    return sum(values) / len(values)


def train_with(name, initial, dtype, **feedback):
    """gpt2 under another optimizer, every row of a batch on a rank of its own."""
    weights = {key: value.to(dtype, copy=True).requires_grad_() for key, value in initial.items()}
    model, lr = Decoder(weights, "gpt2"), RATES[name]
    if name == "lamb":
        optimizer = Lamb(weights, lr, BETAS, EPSILON, OTHER_DECAY)
    elif name == "onebit_adam":
        optimizer = OnebitAdam(weights, BATCH, lr, BETAS, EPSILON, OTHER_DECAY, FREEZE_STEP,
                               **feedback)
    else:
        optimizer = torch.optim.SGD(weights.values(), lr=lr, momentum=MOMENTUM, foreach=False,
                                    nesterov=name == "nesterov", weight_decay=OTHER_DECAY)
    losses, norms = [], []
    for step in range(OTHER_STEPS):
        rows = [gradients_of(model, tokens_of(step)[row:row + 1]) for row in range(BATCH)]
        of_ranks = [gradients for _, gradients in rows]
        losses.append(average([loss for loss, _ in rows]))
        mean = {key: average([each[key] for each in of_ranks]) for key in weights}
        is_local = name == "onebit_adam" and optimizer.frozen()
        norms.append(average([norm_of(each) ** 2 for each in of_ranks]) ** 0.5
                     if is_local else norm_of(mean))
        clip = 1.0 if name == "onebit_adam" else min(1.0, CLIP / (norms[-1] + 1e-6))
        with torch.no_grad():
            if name == "onebit_adam":
                optimizer.step(of_ranks)
            elif name == "lamb":
                optimizer.step({key: clip * gradient for key, gradient in mean.items()})
            else:
                for key, weight in weights.items():
                    weight.grad = clip * mean[key]
                optimizer.step()
    return {"loss": losses, "grad_norm": norms}


def write_optimizers(initial, target):
    golden = {"torch": torch.__version__, "date": datetime.date.today().isoformat(),
              "weights_checksum": checksum(initial)}
    for name in RATES:
        exact = train_with(name, initial, torch.float64)
        rounded = train_with(name, initial, torch.float32)
        golden[name] = exact
        print(f"{name}: loss {exact['loss'][0]:.6f} -> {exact['loss'][-1]:.6f}; fp32 against "
              f"float64: loss {largest_relative(rounded['loss'], exact['loss']):.1e}, norm "
              f"{largest_relative(rounded['grad_norm'], exact['grad_norm']):.1e}")
    for wrong in ("keeps_worker", "keeps_server"):
        other = train_with("onebit_adam", initial, torch.float64, **{wrong: False})["loss"]
        error = largest_relative(other, golden["onebit_adam"]["loss"])
        print(f"onebit_adam without {wrong}: loss {error:.1e} from the right one")
    (pathlib.Path(target) / "optimizers.json").write_text(json.dumps(golden, indent=1) + "\n")


def largest_relative(a, b):
    return max(abs(x - y) / abs(y) for x, y in zip(a, b))


def sha256(tensors):
    """Of the bytes of all tensors in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()


def checksum(weights):
    """Every weight times a small integer that depends on its place: sees signs and permutations."""
    total = 0.0
    for place, name in enumerate(sorted(weights)):
        flat = weights[name].double().flatten()
        factor = (torch.arange(flat.numel()) * 7 + place * 13) % 101 + 1
        total += (flat * factor).sum().item()
    return total


def main(source, target, *names):
    torch.set_num_threads(1)
    if not names or "optimizers" in names:
        write_optimizers(load_file(pathlib.Path(source) / "gpt2.safetensors"), target)
    for family in KV_HEADS:
        if names and family not in names:
            continue
        path = pathlib.Path(source) / (family + ".safetensors")
        initial = load_file(path)
        losses, norms = train(initial, family, torch.float32)
        exact_losses, exact_norms = train(initial, family, torch.float64)
        golden = {
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "weights_sha256": sha256(initial),
            "weights_checksum": checksum(initial),
            "fp32": {"loss": losses, "grad_norm": norms},
            "fp64": {"loss": exact_losses, "grad_norm": exact_norms},
        }
        out = pathlib.Path(target) / (family + ".json")
        out.write_text(json.dumps(golden, indent=1) + "\n")
        print(f"{out}: loss {losses[0]:.6f} -> {losses[-1]:.6f}; fp32 against float64: loss "
              f"{largest_relative(losses, exact_losses):.1e}, norm "
              f"{largest_relative(norms, exact_norms):.1e}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
