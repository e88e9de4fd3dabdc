#!/usr/bin/env python3
"""What eager PyTorch holds while it trains: tests/golden/memory/torch.json.

No GPU and no memory are needed: tensors are fake (FakeTensorMode), and MemTracker adds up the
storages that live. Made with PyTorch 2.15.0. What it does not see: scratch inside of kernels,
rounding of the allocator, the CUDA context, buffers of NCCL. DistributedDataParallel takes no fake
tensors: cases of "ddp" are one replica, without its buckets. Scratch of a foreach step counts as
optimizer.

    tests/parity/torch_memory.py [--only PART] [--output FILE]
"""

import argparse
import json

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed._tools.mem_tracker import MemTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import (CheckpointPolicy, checkpoint,
                                    create_selective_checkpoint_contexts)

MODELS = {
    "gpt2-124m": dict(family="gpt2", layers=12, hidden=768, heads=12, vocab=50257, ffn=3072),
    "gpt2-1.5b": dict(family="gpt2", layers=48, hidden=1600, heads=25, vocab=50257, ffn=6400),
    "llama3.2-1b": dict(family="llama", layers=16, hidden=2048, heads=32, kv_heads=8, ffn=8192,
                        vocab=128256, tied=True),
    "llama3-8b": dict(family="llama", layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336,
                      vocab=128256),
}


class LayerNorm(nn.Module):
    def __init__(self, width, autocast):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.autocast = autocast

    def forward(self, x):
        # What autocast does on a GPU: norms in fp32.
        x = x.float() if self.autocast else x
        return F.layer_norm(x, (x.shape[-1],), self.weight, self.bias, 1e-5)


class Dropout(nn.Module):
    """As on a GPU: a byte for each element stays."""

    def __init__(self, share):
        super().__init__()
        self.share = share

    def forward(self, x):
        return torch.native_dropout(x, self.share, True)[0] if self.share > 0 else x


class Gpt2Block(nn.Module):
    def __init__(self, config, autocast, dropout):
        super().__init__()
        h, ffn = config["hidden"], config["ffn"]
        self.heads, self.dropout = config["heads"], Dropout(dropout)
        self.norm1, self.norm2 = LayerNorm(h, autocast), LayerNorm(h, autocast)
        self.qkv, self.out = nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.up, self.down = nn.Linear(h, ffn), nn.Linear(ffn, h)

    def forward(self, x):
        batch, sequence, h = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(h, dim=2)
        q, k, v = (t.view(batch, sequence, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.out(y.transpose(1, 2).contiguous().view(batch, sequence, h)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))


class RmsNorm(nn.Module):
    """In ops and in fp32, as torchtitan's of 2024 and transformers'."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-5)
        return y.type_as(x) * self.weight


def rotate(x, frequencies):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * frequencies).flatten(3).type_as(x)


class LlamaBlock(nn.Module):
    def __init__(self, config, autocast, dropout):
        super().__init__()
        h, ffn = config["hidden"], config["ffn"]
        self.heads, self.kv_heads = config["heads"], config["kv_heads"]
        self.size = h // self.heads
        self.norm1, self.norm2 = RmsNorm(h), RmsNorm(h)
        self.q = nn.Linear(h, h, bias=False)
        self.k = nn.Linear(h, self.kv_heads * self.size, bias=False)
        self.v = nn.Linear(h, self.kv_heads * self.size, bias=False)
        self.out = nn.Linear(h, h, bias=False)
        self.gate, self.up = nn.Linear(h, ffn, bias=False), nn.Linear(h, ffn, bias=False)
        self.down = nn.Linear(ffn, h, bias=False)

    def repeat(self, x):
        batch, sequence, heads, size = x.shape
        n = self.heads // self.kv_heads
        x = x[:, :, :, None, :].expand(batch, sequence, heads, n, size)
        return x.reshape(batch, sequence, heads * n, size)

    def forward(self, x, frequencies):
        batch, sequence, h = x.shape
        n = self.norm1(x)
        q, k, v = (f(n).view(batch, sequence, -1, self.size) for f in (self.q, self.k, self.v))
        q, k = rotate(q, frequencies), rotate(k, frequencies)
        k, v = self.repeat(k), self.repeat(v)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(batch, sequence, h))
        n = self.norm2(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


def selective_contexts():
    """torchtitan's of 2024: of the products every second one is kept, and the attention."""
    counts = {}

    def policy(context, op, *args, **kwargs):
        name = str(op)
        key = "recomputed" if context.is_recompute else "first"
        if name.startswith("aten.mm."):
            counts[key] = counts.get(key, 0) + 1
            keep = counts[key] % 2 == 1
        else:
            keep = "scaled_dot_product" in name
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


class Model(nn.Module):
    def __init__(self, config, autocast, recompute, sequence, dropout):
        super().__init__()
        self.config, self.recompute = config, recompute
        self.dropout = Dropout(dropout)
        h, vocab = config["hidden"], config["vocab"]
        self.llama = config["family"] == "llama"
        block = LlamaBlock if self.llama else Gpt2Block
        self.tokens = nn.Embedding(vocab, h)
        if not self.llama:
            self.positions = nn.Embedding(sequence, h)
        self.blocks = nn.ModuleList(block(config, autocast, dropout)
                                    for _ in range(config["layers"]))
        self.norm = RmsNorm(h) if self.llama else LayerNorm(h, autocast)
        self.head = nn.Linear(h, vocab, bias=False)
        if config.get("tied", not self.llama):
            self.head.weight = self.tokens.weight

    def rows(self, tokens):
        x = self.tokens(tokens)
        arguments = []
        if self.llama:
            pairs = self.config["hidden"] // self.config["heads"] // 2
            arguments = [torch.ones(1, tokens.shape[1], 1, pairs, dtype=torch.complex64,
                                    device=tokens.device)]
        else:
            positions = torch.arange(tokens.shape[1], device=tokens.device)
            x = self.dropout(x + self.positions(positions))
        for block in self.blocks:
            if self.recompute == "full":
                x = checkpoint(block, x, *arguments, use_reentrant=False,
                               preserve_rng_state=False)
            elif self.recompute == "selective":
                x = checkpoint(block, x, *arguments, use_reentrant=False,
                               preserve_rng_state=False, context_fn=selective_contexts)
            else:
                x = block(x, *arguments)
        return self.norm(x)

    def forward(self, tokens, targets, chunks):
        x = self.rows(tokens)
        if chunks == 1:
            logits = self.head(x).float()
            return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))

        def part(rows, wanted):
            return F.cross_entropy(self.head(rows).float(), wanted, reduction="sum")

        rows = x.reshape(-1, x.shape[-1]).chunk(chunks)
        losses = [checkpoint(part, r, t, use_reentrant=False, preserve_rng_state=False)
                  for r, t in zip(rows, targets.view(-1).chunk(chunks))]
        return torch.stack(losses).sum() / targets.numel()


def shard(model, mesh):
    """As torchtitan: each block, then what is left; bf16 weights, fp32 gradients."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model


def train_step(model, optimizer, case, tracker, tokens, targets):
    for _ in range(case["accumulation"]):
        with torch.autocast("cpu", torch.bfloat16, enabled=case["precision"] == "autocast"):
            loss = model(tokens, targets, case["chunks"])
        (loss / case["accumulation"]).backward()
        del loss
        tracker.reset_mod_stats()  # the peak stays
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    optimizer.step()
    optimizer.zero_grad()


def tracked(case, mesh):
    """The tracker's snapshot at the peak of the second step."""
    torch.set_default_dtype(torch.bfloat16 if case["precision"] == "pure" else torch.float32)
    model = Model(MODELS[case["model"]], case["precision"] == "autocast", case["recompute"],
                  case["sequence"], case["dropout"])
    if case["parallel"] == "fsdp2":
        model = shard(model, mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    shape = (case["micro_batch"], case["sequence"])
    data = [torch.zeros(shape, dtype=torch.long) for _ in range(2)]
    if case["parallel"] == "fsdp2":
        tracker = FSDPMemTracker(model, optimizer)
        tracker.track_inputs(tuple(data))
    else:
        tracker = MemTracker()
        tracker.track_external(model, optimizer, *data)
    for _ in range(2):
        with tracker:
            train_step(model, optimizer, case, tracker, *data)
    snapshot = tracker.get_tracker_snapshot("peak")
    (device,) = [each for each in snapshot if each.type == "cpu"]
    return {getattr(kind, "value", kind): count for kind, count in snapshot[device].items()}


def held(case):
    dist.init_process_group("fake", rank=0, world_size=case["ranks"], store=FakeStore())
    try:
        mesh = init_device_mesh("cpu", (case["ranks"],))
        with FakeTensorMode():
            return tracked(case, mesh)
    finally:
        dist.destroy_process_group()


def cases():
    def case(model, parallel, sequence, micro_batch, recompute="none", precision=None, chunks=1,
             accumulation=1, ranks=8, dropout=0):
        usual = "mixed" if parallel == "fsdp2" else "autocast"
        return dict(model=model, parallel=parallel, sequence=sequence, micro_batch=micro_batch,
                    recompute=recompute, precision=precision or usual, ranks=ranks, chunks=chunks,
                    accumulation=accumulation, dropout=dropout)

    for micro_batch in (1, 8):
        yield case("gpt2-124m", "ddp", 1024, micro_batch)
    for sequence in (4096, 32768):
        yield case("gpt2-124m", "ddp", sequence, 1)
    yield case("gpt2-124m", "ddp", 1024, 8, accumulation=2)
    yield case("gpt2-124m", "ddp", 1024, 8, chunks=8)
    yield case("gpt2-124m", "ddp", 1024, 8, precision="pure")
    yield case("gpt2-1.5b", "ddp", 1024, 4)
    yield case("gpt2-1.5b", "ddp", 1024, 4, recompute="full")
    yield case("gpt2-1.5b", "ddp", 1024, 4, precision="pure")
    yield case("gpt2-1.5b", "fsdp2", 1024, 8)
    yield case("llama3.2-1b", "ddp", 2048, 2)
    yield case("llama3.2-1b", "ddp", 8192, 1, recompute="full")
    yield case("llama3.2-1b", "fsdp2", 4096, 2)
    yield case("llama3.2-1b", "fsdp2", 32768, 1, recompute="full")
    yield case("llama3.2-1b", "fsdp2", 8192, 1, chunks=8)
    for recompute in ("none", "selective", "full"):
        yield case("llama3-8b", "fsdp2", 8192, 1, recompute)
    yield case("llama3-8b", "fsdp2", 1024, 1)
    yield case("llama3-8b", "fsdp2", 8192, 2, "selective")
    # Peaks elsewhere than in the loss: in a block, at the end of the backward, in the step.
    yield case("gpt2-124m", "ddp", 1024, 8, "full", chunks=8)
    yield case("gpt2-124m", "ddp", 512, 1)
    yield case("llama3.2-1b", "ddp", 2048, 4, chunks=16)
    yield case("llama3.2-1b", "fsdp2", 1024, 1, accumulation=2)
    yield case("llama3-8b", "fsdp2", 512, 1)
    yield case("llama3-8b", "fsdp2", 8192, 1, "full", chunks=16)
    yield case("gpt2-1.5b", "fsdp2", 1024, 8, "full", chunks=16)
    yield case("llama3-8b", "fsdp2", 8192, 1, "selective", chunks=8, ranks=64)
    yield case("gpt2-1.5b", "ddp", 1024, 4, chunks=8)
    yield case("llama3.2-1b", "fsdp2", 2048, 4, chunks=16)
    # What is left of the mixture.
    yield case("gpt2-124m", "fsdp2", 1024, 8, ranks=4)
    yield case("gpt2-124m", "ddp", 1024, 8, dropout=0.1)
    yield case("gpt2-124m", "ddp", 1024, 8, "full", dropout=0.1, chunks=8)
    yield case("gpt2-1.5b", "fsdp2", 2048, 4, dropout=0.1)
    yield case("gpt2-1.5b", "ddp", 32768, 1, "full", chunks=32)
    yield case("llama3.2-1b", "ddp", 2048, 2, precision="pure")
    yield case("llama3.2-1b", "ddp", 1024, 2, "full", precision="pure", chunks=8)
    yield case("llama3.2-1b", "fsdp2", 8192, 1, "selective", ranks=4)
    yield case("llama3-8b", "ddp", 4096, 1, "full", precision="pure")


# The categories of both trackers, in this project's words.
TAGS = {"Parameter": "parameter", "Sharded Param": "parameter", "Gradient": "gradient",
        "Sharded Grad": "gradient", "Optstate": "optimizer", "OptState": "optimizer",
        "Activation": "activation", "Temp": "workspace", "Unsharded Param": "communication",
        "Unsharded Grad": "communication", "All Gather": "communication",
        "Reduce Scatter": "communication", "Buffer": "staging", "Other": "staging",
        "Inputs": "staging"}


def tagged(snapshot):
    sums = dict.fromkeys(TAGS.values(), 0)
    for kind, count in snapshot.items():
        if kind != "Total":
            sums[TAGS[kind]] += count
    return {"total": snapshot["Total"], **sums}


def write_cases(path, head, rows):
    """A golden file: what `head` has, and "cases", one a line."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    with open(path, "w") as out:
        out.write(f'{json.dumps(head)[:-1]},\n"cases": [\n{lines}\n]}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a part of a case, as it is printed")
    parser.add_argument("--output", help="the file; else nothing is written")
    arguments = parser.parse_args()
    rows = []
    for case in cases():
        name = json.dumps(case)
        if arguments.only not in name:
            continue
        rows.append({**case, "bytes": tagged(held(case))})
        print(name, {k: round(v / 2**20, 1) for k, v in rows[-1]["bytes"].items()}, flush=True)
    if arguments.output:
        write_cases(arguments.output, {"torch": torch.__version__, "models": MODELS}, rows)


if __name__ == "__main__":
    main()
