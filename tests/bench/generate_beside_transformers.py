#!/usr/bin/env python3
"""Tokens a second of `zerolab generate` beside transformers' generate, in turn, with the same weights and prompt.

MODEL is a Hugging Face folder of a decoder. The text after the first token is timed, greedily, to its full length;
GB/s are of the weights, each of them read once a token, beside what torch.sum reads of half a gibibyte in the same
moments: the memory's bandwidth, which bounds both programs. Needs the program build/zerolab and a Python with torch and
transformers; the product needs neither this script nor Python.

usage: generate_beside_transformers.py MODEL [--tokens 100] [--pairs 3] [--precision fp32,bf16] [--threads N]
                                       [--python PYTHON] [--program build/zerolab]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

PROMPT = "In the beginning God created"
TRANSFORMERS = r'''
import json, sys, time
import torch, transformers
folder, prompt, tokens, dtype, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
torch.set_num_threads(threads)
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
model.generation_config.eos_token_id = None
ids = transformers.AutoTokenizer.from_pretrained(folder)(prompt, return_tensors="pt").input_ids

def seconds(count):
    start = time.perf_counter()
    with torch.no_grad():
        made = model.generate(ids, do_sample=False, max_new_tokens=count)
    return time.perf_counter() - start, made[0][ids.shape[1]:].tolist()

seconds(4)
first, _ = seconds(1)
whole, made = seconds(tokens)
many = torch.ones(1 << 27)
sums = []
for _ in range(5):
    start = time.perf_counter()
    many.sum()
    sums.append(time.perf_counter() - start)
print(json.dumps({"rate": (tokens - 1) / (whole - first), "ids": made, "version": transformers.__version__,
                  "bandwidth": many.nbytes / min(sums)}))
'''


def output_of(command, environment=None):
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def run_transformers(options, precision):
    dtype = {"fp32": "float32", "bf16": "bfloat16"}[precision]
    command = [options.python, "-c", TRANSFORMERS, options.model, PROMPT, str(options.tokens), dtype,
               str(options.threads)]
    return json.loads(output_of(command).splitlines()[-1])


def run_zerolab(options, precision):
    command = [options.program, "generate", "--model", options.model, "--prompt", PROMPT, "--max-tokens",
               str(options.tokens), "--ignore-end", "--precision", precision, "-o", "json"]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    made = json.loads(output_of(command, environment))
    return {"rate": made["decode_tokens_per_second"], "ids": made["outputs"][0],
            "bytes": made["weight_bytes"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--precision", default="fp32,bf16")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--program", default="build/zerolab")
    options = parser.parse_args()
    for precision in options.precision.split(","):
        ratios, ours, theirs, shares = [], [], [], []
        for pair in range(options.pairs):
            their, our = run_transformers(options, precision), run_zerolab(options, precision)
            ours.append(our["rate"])
            theirs.append(their["rate"])
            ratios.append(our["rate"] / their["rate"])
            shares.append(our["rate"] * our["bytes"] / their["bandwidth"])
            same = next((i for i, (a, b) in enumerate(zip(our["ids"], their["ids"])) if a != b), options.tokens)
            print(f"{precision} pair {pair + 1}: transformers {their['version']} {their['rate']:.1f} tokens/s, zerolab "
                  f"{our['rate']:.1f}, {ratios[-1]:.2f}x; the first {same} of {options.tokens} tokens are the same",
                  flush=True)
        print(f"{precision} median: transformers {statistics.median(theirs):.1f} tokens/s, zerolab "
              f"{statistics.median(ours):.1f} ({statistics.median(ours) * our['bytes'] * 1e-9:.1f} GB/s, "
              f"{100 * statistics.median(shares):.0f} % of the bandwidth), "
              f"{statistics.median(ratios):.2f}x [{min(ratios):.2f}, {max(ratios):.2f}]")


if __name__ == "__main__":
    main()
