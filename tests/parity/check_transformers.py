#!/usr/bin/env python3
"""Does Hugging Face's code agree with zerolab about what a GPT-2, a Llama and a Qwen2 are?

    mkdir /tmp/parity && ZL_PARITY_WEIGHTS=/tmp/parity build/tests/test_parity
    python3 tests/parity/check_transformers.py /tmp/parity tests/golden/parity

Loads zerolab's initial weights into transformers' own models and compares the loss of the first
batch with the golden one. Needs torch, numpy, safetensors and transformers; run by hand.
"""
import json
import pathlib
import sys

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file

# The models and the first batch of parity_test.cpp.
BATCH, LENGTH, VOCAB, HIDDEN, LAYERS = 4, 32, 97, 64, 3
HEADS, KV_HEADS, HEAD_SIZE, FFN = 4, 2, 16, 128


def first_tokens():
    row, position = torch.arange(BATCH)[:, None], torch.arange(LENGTH + 1)[None]
    return (row * 17 + position * (1 + row % 3) + position * position // 7) % VOCAB


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=VOCAB, n_positions=LENGTH, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS,
        layer_norm_epsilon=1e-5))


DEFAULT = {"rope_type": "default", "rope_theta": 10000.0}
STRETCHED = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 0.5,
             "high_freq_factor": 2.0, "original_max_position_embeddings": 16}


def llama_like(config_type, model_type, rope=DEFAULT):
    return model_type(config_type(
        vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, max_position_embeddings=LENGTH,
        rms_norm_eps=1e-5, tie_word_embeddings=False,
        rope_parameters=rope))


MODELS = {
    "gpt2": gpt2,
    "llama": lambda: llama_like(transformers.LlamaConfig, transformers.LlamaForCausalLM),
    "llama3": lambda: llama_like(
        transformers.LlamaConfig, transformers.LlamaForCausalLM, STRETCHED),
    "qwen2": lambda: llama_like(transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
}

GPT2_NAMES = {
    "embedding.token": "transformer.wte.weight", "embedding.position": "transformer.wpe.weight",
    "final_norm": "transformer.ln_f", "blocks": "transformer.h", "norm1": "ln_1", "norm2": "ln_2",
    "attention.qkv": "attn.c_attn", "attention.out": "attn.c_proj", "mlp.up": "mlp.c_fc",
    "mlp.down": "mlp.c_proj"}
LLAMA_NAMES = {
    "embedding.token": "model.embed_tokens.weight", "head": "lm_head.weight",
    "final_norm": "model.norm", "blocks": "model.layers", "norm1": "input_layernorm",
    "norm2": "post_attention_layernorm", "attention.out": "self_attn.o_proj",
    "mlp.down": "mlp.down_proj"}


def renamed(name, names):
    for ours, theirs in names.items():
        name = name.replace(ours, theirs)
    return name


def gpt2_state(weights):
    """Its linear layers keep [in, out]."""
    for name, value in weights.items():
        linear = ".attention." in name or ".mlp." in name
        yield renamed(name, GPT2_NAMES), value.T if linear and value.ndim == 2 else value


def llama_state(weights):
    """Its projections are apart."""
    for name, value in weights.items():
        if ".qkv." in name:
            parts = value.split([HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE])
            for letter, part in zip("qkv", parts):
                yield name.replace("attention.qkv", f"self_attn.{letter}_proj").replace(
                    "blocks", "model.layers"), part
        elif ".up." in name:
            for half, part in zip(("gate", "up"), value.split(FFN)):
                yield name.replace("mlp.up", f"mlp.{half}_proj").replace(
                    "blocks", "model.layers"), part
        else:
            yield renamed(name, LLAMA_NAMES), value


def main(source, golden):
    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    worst, tokens = 0.0, first_tokens()
    for family, make in MODELS.items():
        weights = load_file(pathlib.Path(source) / (family + ".safetensors"))
        model = make().eval()
        state = dict(gpt2_state(weights) if family == "gpt2" else llama_state(weights))
        missing, unexpected = model.load_state_dict(state, strict=False)
        if unexpected or any("lm_head" not in name for name in missing):
            sys.exit(f"{family}: missing {missing}, unexpected {unexpected}")
        model.tie_weights()
        with torch.no_grad():
            logits = model(tokens[:, :-1]).logits
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item()
        expected = json.loads((pathlib.Path(golden) / (family + ".json")).read_text())
        expected = expected["fp32"]["loss"][0]
        worst = max(worst, abs(loss / expected - 1))
        print(f"{family}: transformers {loss:.9f}, golden {expected:.9f}, "
              f"relative {abs(loss / expected - 1):.1e}")
    sys.exit(worst > 1e-6)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
