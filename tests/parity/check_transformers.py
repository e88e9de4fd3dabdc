#!/usr/bin/env python3
"""Does Hugging Face's code agree with zerolab about what a GPT-2, a Llama and a Qwen2 are?

    zerolab_parity_initial /tmp/parity
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
from generate import read


def gpt2(config):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=int(config["vocab"]), n_positions=int(config["max_sequence"]),
        n_embd=int(config["hidden"]), n_layer=int(config["layers"]), n_head=int(config["heads"]),
        n_inner=int(config["ffn"]), layer_norm_epsilon=float(config["norm_epsilon"])))


def llama_like(config_type, model_type, tied):
    def make(config):
        return model_type(config_type(
            vocab_size=int(config["vocab"]), hidden_size=int(config["hidden"]),
            intermediate_size=int(config["ffn"]), num_hidden_layers=int(config["layers"]),
            num_attention_heads=int(config["heads"]), num_key_value_heads=int(config["kv_heads"]),
            max_position_embeddings=int(config["max_sequence"]),
            rms_norm_eps=float(config["norm_epsilon"]), tie_word_embeddings=tied,
            rope_parameters={"rope_type": "default", "rope_theta": float(config["rope_theta"])}))
    return make


MODELS = {
    "gpt2": gpt2,
    "llama": llama_like(transformers.LlamaConfig, transformers.LlamaForCausalLM, False),
    "qwen2": llama_like(transformers.Qwen2Config, transformers.Qwen2ForCausalLM, True),
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


def llama_state(weights, config):
    """Its projections are apart."""
    size = int(config["head_size"])
    heads, kv_heads, ffn = int(config["heads"]), int(config["kv_heads"]), int(config["ffn"])
    for name, value in weights.items():
        if ".qkv." in name:
            parts = value.split([heads * size, kv_heads * size, kv_heads * size])
            for letter, part in zip("qkv", parts):
                yield name.replace("attention.qkv", f"self_attn.{letter}_proj").replace(
                    "blocks", "model.layers"), part
        elif ".up." in name:
            for half, part in zip(("gate", "up"), value.split(ffn)):
                yield name.replace("mlp.up", f"mlp.{half}_proj").replace(
                    "blocks", "model.layers"), part
        else:
            yield renamed(name, LLAMA_NAMES), value


def main(source, golden):
    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    worst = 0.0
    for family, make in MODELS.items():
        weights, tokens, config = read(pathlib.Path(source) / (family + ".safetensors"))
        model = make(config).eval()
        state = dict(gpt2_state(weights) if family == "gpt2" else llama_state(weights, config))
        missing, unexpected = model.load_state_dict(state, strict=False)
        if unexpected or any("lm_head" not in name for name in missing):
            sys.exit(f"{family}: missing {missing}, unexpected {unexpected}")
        model.tie_weights()
        with torch.no_grad():
            logits = model(tokens[0, :, :-1]).logits
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[0, :, 1:].flatten()).item()
        expected = json.loads((pathlib.Path(golden) / (family + ".json")).read_text())["loss"][0]
        worst = max(worst, abs(loss / expected - 1))
        print(f"{family}: transformers {loss:.9f}, golden {expected:.9f}, "
              f"relative {abs(loss / expected - 1):.1e}")
    sys.exit(worst > 1e-6)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
