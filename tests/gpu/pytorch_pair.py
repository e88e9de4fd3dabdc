#!/usr/bin/env python3
"""The PyTorch side of the acceptance run: one process that is asked, in turn with zerolab, to take training steps.

Reads one JSON object per line and answers with one per line:
  {"cmd": "hello"}                                 versions and the settings that never change
  {"cmd": "load", "model": {...}, "batch": B, "sequence": T, "compile": "block|full|none"}
  {"cmd": "steps", "count": N}                     seconds of each step, the last loss
  {"cmd": "attention", "batch": B, "heads": H, "sequence": T, "head_size": D}
                                                   seconds of causal SDPA forward and backward, per backend
  {"cmd": "quit"}
What fails answers {"ok": false, "error": ...}. `--device cpu` serves to try the script without a GPU.

Settings: fp32 master weights under bf16 autocast, fused AdamW, clipping at 1, F.scaled_dot_product_attention,
TF32 for the rest, vocabularies padded to a multiple of 64, random tokens, one loss read per step.
"""
import argparse
import gc
import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

options = argparse.ArgumentParser()
options.add_argument("--device", default="cuda")
options = options.parse_args()
DEVICE = options.device
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries and the compiler's processes print is not an answer


class RMSNorm(torch.nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight, self.epsilon = torch.nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.epsilon)).type_as(x) * self.weight


class Block(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        c, d = model["hidden"], model["head_size"]
        self.heads, self.kv, self.d = model["heads"], model["kv_heads"], d
        self.llama = model["family"] == "llama"
        bias = not self.llama
        norm = (lambda: RMSNorm(c, model["norm_epsilon"])) if self.llama else (lambda: torch.nn.LayerNorm(c))
        self.n1, self.n2 = norm(), norm()
        self.qkv = torch.nn.Linear(c, (self.heads + 2 * self.kv) * d, bias=bias)
        self.out = torch.nn.Linear(self.heads * d, c, bias=bias)
        self.up = torch.nn.Linear(c, model["ffn"] * (2 if self.llama else 1), bias=bias)
        self.down = torch.nn.Linear(model["ffn"], c, bias=bias)

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).type_as(x)

    def attend(self, x, cos, sin):
        b, t, _ = x.shape
        sizes = [self.heads * self.d, self.kv * self.d, self.kv * self.d]
        q, k, v = (p.view(b, t, -1, self.d).transpose(1, 2) for p in self.qkv(x).split(sizes, dim=2))
        if self.llama:
            q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        grouped = {"enable_gqa": True} if self.kv != self.heads else {}
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, **grouped)
        return self.out(y.transpose(1, 2).reshape(b, t, -1))

    def forward(self, x, cos, sin):
        x = x + self.attend(self.n1(x), cos, sin)
        h = self.up(self.n2(x))
        if self.llama:
            gate, up = h.chunk(2, dim=-1)
            return x + self.down(F.silu(gate) * up)
        return x + self.down(F.gelu(h, approximate="tanh"))


class Transformer(torch.nn.Module):
    def __init__(self, model, sequence):
        super().__init__()
        self.vocab = (model["vocab"] + 63) // 64 * 64
        c, d = model["hidden"], model["head_size"]
        self.llama = model["family"] == "llama"
        self.wte = torch.nn.Embedding(self.vocab, c)
        self.wpe = None if self.llama else torch.nn.Embedding(max(sequence, model["max_sequence"]), c)
        self.blocks = torch.nn.ModuleList(Block(model) for _ in range(model["layers"]))
        self.norm = RMSNorm(c, model["norm_epsilon"]) if self.llama else torch.nn.LayerNorm(c)
        self.head = torch.nn.Linear(c, self.vocab, bias=False)
        if model["tied_embeddings"]:
            self.head.weight = self.wte.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.02)
        angle = torch.outer(torch.arange(sequence).float(),
                            model["rope_theta"] ** (-torch.arange(0, d, 2).float() / d))
        self.register_buffer("cos", angle.cos()), self.register_buffer("sin", angle.sin())

    def loss(self, x, targets):
        return F.cross_entropy(self.head(self.norm(x)).view(-1, self.vocab), targets.view(-1))

    def forward(self, tokens, targets):
        x = self.wte(tokens)
        if self.wpe is not None:
            x = x + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.loss(x, targets)


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


class Trainer:
    """One model with its optimizer; the compiled parts are reused over the layers ("block") or cover it all ("full")."""

    def __init__(self, model, batch, sequence, compile_mode):
        torch.manual_seed(1)
        with torch.device(DEVICE):
            self.model = Transformer(model, sequence)
            self.data = [torch.randint(model["vocab"], (batch, sequence + 1)) for _ in range(4)]
        self.forward = self.model
        if compile_mode == "full":
            self.forward = torch.compile(self.model, dynamic=False)
        elif compile_mode == "block":
            for block in self.model.blocks:
                block.compile(dynamic=False)
            self.model.loss = torch.compile(self.model.loss, dynamic=False)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                           fused=DEVICE == "cuda")

    def step(self, number):
        data = self.data[number % len(self.data)]
        synchronize()
        start = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = self.forward(data[:, :-1], data[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        value = loss.item()
        synchronize()
        return time.perf_counter() - start, value

    def rest(self):
        """Leaves only weights and optimizer states on the GPU, which zerolab uses next."""
        self.optimizer.zero_grad(set_to_none=True)
        release()


def release():
    if DEVICE == "cuda":
        torch.cuda.empty_cache()


trainer = None


def drop_trainer():
    """Gives all of the GPU's memory back; a compiled module is part of a cycle, which only the collector ends."""
    global trainer
    trainer = None
    gc.collect()
    release()


def hello(_):
    reply = {"torch": torch.__version__, "cuda": torch.version.cuda,
             "settings": "fp32 weights under bf16 autocast, fused AdamW, clip 1.0, SDPA, TF32, vocabulary padded to 64"}
    if DEVICE == "cuda":
        reply.update(cudnn=torch.backends.cudnn.version(), nccl=list(torch.cuda.nccl.version()))
    return reply


def load(request):
    global trainer
    drop_trainer()
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    trainer = Trainer(request["model"], request["batch"], request["sequence"], request["compile"])
    for number in range(3):
        _, loss = trainer.step(number)
    peak = torch.cuda.max_memory_allocated() if DEVICE == "cuda" else 0
    trainer.rest()
    parameters = sum(p.numel() for p in trainer.model.parameters())
    return {"warm_up_seconds": time.perf_counter() - start, "peak_bytes": peak, "loss": loss, "parameters": parameters}


def steps(request):
    trainer.step(0)  # the memory that rest() gave back
    timed = [trainer.step(number) for number in range(request["count"])]
    trainer.rest()
    return {"times": [seconds for seconds, _ in timed], "loss": timed[-1][1]}


def median_seconds(work, repeats=5):
    """Median over repeats of the mean of enough launches to fill 20 ms; CUDA events."""
    def timed(launches):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(launches):
            work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / launches
    timed(3)
    launches = max(1, int(0.02 / timed(3)))
    return statistics.median(timed(launches) for _ in range(repeats))


def attention(request):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    b, h, t, d = (request[key] for key in ("batch", "heads", "sequence", "head_size"))
    q, k, v = (torch.randn(b, h, t, d, device=DEVICE, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    grad = torch.randn(b, h, t, d, device=DEVICE, dtype=torch.bfloat16)
    reply = {}
    for name in ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION"):
        try:
            with sdpa_kernel(getattr(SDPBackend, name)):
                forward = median_seconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
                out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                backward = median_seconds(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True))
            reply[name.lower()] = {"forward": forward, "backward": backward}
        except (RuntimeError, AttributeError) as error:
            reply[name.lower()] = {"error": str(error).splitlines()[0]}
    release()
    return {"backends": reply}


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    commands = {"hello": hello, "load": load, "steps": steps, "attention": attention}
    for line in sys.stdin:
        request = json.loads(line)
        if request["cmd"] == "quit":
            break
        try:
            reply = dict(commands[request["cmd"]](request), ok=True)
        except Exception as error:  # every failure is an answer: the other side must not wait
            reply = {"ok": False, "error": f"{type(error).__name__}: {error}"}
            if "out of memory" in str(error):  # the compiler wraps torch's own exception in others
                reply["error"] = "out of memory"
        if not reply["ok"]:  # here, for the exception holds the tensors of the calls it came through
            drop_trainer()
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    main()
