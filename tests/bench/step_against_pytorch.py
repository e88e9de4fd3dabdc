#!/usr/bin/env python3
"""One GPT-2 124M training step (forward, backward, clipped AdamW) beside PyTorch's, in one run.

The two are measured in turn (A B A B ...), so that a machine whose speed drifts treats both alike, and the
ratio is taken pair by pair. Needs the program build/zerolab and a Python with torch; the product needs neither
this script nor Python.

usage: step_against_pytorch.py [--batch 4] [--sequence 256] [--pairs 3] [--steps 4] [--precision fp32,bf16]
                               [--python PYTHON] [--compile] [--program build/zerolab]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

TORCH_STEP = r'''
import json, math, sys, time
import torch
import torch.nn.functional as F
B, T, STEPS, PRECISION, COMPILE = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5] == "1"
L, H, C, V = 12, 12, 768, 50257
torch.manual_seed(1)
torch.set_num_threads(2 if len(sys.argv) < 7 else int(sys.argv[6]))

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = torch.nn.LayerNorm(C), torch.nn.LayerNorm(C)
        self.qkv, self.out = torch.nn.Linear(C, 3 * C), torch.nn.Linear(C, C)
        self.up, self.down = torch.nn.Linear(C, 4 * C), torch.nn.Linear(4 * C, C)

    def attend(self, x):
        q, k, v = (t.view(B, T, H, C // H).transpose(1, 2) for t in self.qkv(x).split(C, dim=2))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.full((T, T), float("-inf")).triu(1)
            y = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(C // H) + mask, dim=-1).to(v.dtype) @ v
        return self.out(y.transpose(1, 2).reshape(B, T, C))

    def forward(self, x):
        x = x + self.attend(self.n1(x))
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))

class Gpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(V, C), torch.nn.Embedding(1024, C)
        self.blocks, self.norm = torch.nn.ModuleList(Block() for _ in range(L)), torch.nn.LayerNorm(C)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(F.linear(self.norm(x), self.wte.weight).view(-1, V), targets.view(-1))

model = Gpt()
forward = torch.compile(model) if COMPILE else model
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)
times = []
for step in range(STEPS):
    tokens, targets = torch.randint(V, (B, T)), torch.randint(V, (B, T))
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=PRECISION == "bf16"):
        loss = forward(tokens, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    times.append(time.perf_counter() - start)
warm_up = 2 if COMPILE else 1
print(json.dumps({"version": torch.__version__, "loss": float(loss), "times": times[warm_up:]}))
'''


def openblas_core():
    """The OpenBLAS kernel this CPU can run. OpenBLAS 0.3.21 takes a CPU model it does not know for a Prescott
    (62 instead of 250 GFLOP/s on 2 cores of a 2025 Xeon), which would flatter every ratio here."""
    with open("/proc/cpuinfo") as cpuinfo:
        flags = cpuinfo.read()
    return "Cooperlake" if "avx512_bf16" in flags else "SkylakeX" if "avx512f" in flags else "Haswell"


def environment():
    return dict(os.environ, OMP_WAIT_POLICY="passive", OPENBLAS_CORETYPE=openblas_core())


def run_torch(options, precision):
    command = [options.python, "-c", TORCH_STEP, str(options.batch), str(options.sequence),
               str(options.steps + (1 if options.compile else 0)), precision, "1" if options.compile else "0",
               str(options.threads)]
    out = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True)
    return json.loads(out.stdout.splitlines()[-1])


def run_zerolab(options, precision):
    command = [options.program, "run", "gpt2-124m", "--backend", "cpu", "--strategy", "zero-0", "--ranks", "1",
               "--micro-batch", str(options.batch), "--sequence-length", str(options.sequence), "--steps",
               str(options.steps), "--precision", precision, "--data", "synthetic", "--no-db", "-o", "json"]
    out = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True)
    return json.loads(out.stdout)["results"][0]


def precisions():
    """bf16 too where this processor multiplies it: elsewhere PyTorch takes minutes a step."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return "fp32,bf16" if "avx512_bf16" in flags or "amx_bf16" in flags else "fp32"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--precision", default=precisions())
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--program", default="build/zerolab")
    options = parser.parse_args()
    for precision in options.precision.split(","):
        ratios, ours, theirs = [], [], []
        for pair in range(options.pairs):
            torch_run, our_run = run_torch(options, precision), run_zerolab(options, precision)
            theirs.append(statistics.median(torch_run["times"]))
            ours.append(our_run["step_time_seconds"]["median"])
            ratios.append(theirs[-1] / ours[-1])
            print(f"{precision} pair {pair + 1}: torch {torch_run['version']} {theirs[-1]:.3f} s, "
                  f"zerolab {ours[-1]:.3f} s, {ratios[-1]:.2f}x (losses {torch_run['loss']:.3f}, "
                  f"{our_run['loss'][-1]:.3f})", flush=True)
        print(f"{precision} median: torch {statistics.median(theirs):.3f} s, zerolab {statistics.median(ours):.3f} s, "
              f"{statistics.median(ratios):.2f}x [{min(ratios):.2f}, {max(ratios):.2f}]")


if __name__ == "__main__":
    main()
