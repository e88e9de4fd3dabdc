#!/usr/bin/env python3
"""Golden frequencies of scaled rotary positions, made by transformers.

    python3 tests/golden/rope/generate.py > tests/golden/rope/llama3.json

Needs torch and transformers; the build and the tests do not need this script.
"""
import json

from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

# Llama 3.1 (8B, 70B and 405B), Llama 3.2 1B, and one whose blend has other bounds.
CASES = [(128, 500000.0, 8.0, 1.0, 4.0, 8192), (64, 500000.0, 32.0, 1.0, 4.0, 8192),
         (48, 10000.0, 4.0, 2.0, 16.0, 512)]


def frequencies(head_size, theta, factor, low, high, original):
    scaling = {"rope_type": "llama3", "rope_theta": theta, "factor": factor,
               "low_freq_factor": low, "high_freq_factor": high,
               "original_max_position_embeddings": original}
    config = LlamaConfig(hidden_size=2 * head_size, num_attention_heads=2, head_dim=head_size,
                         max_position_embeddings=int(factor * original), rope_parameters=scaling)
    values, attention = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    assert attention == 1.0
    return {"head_size": head_size, "rope_theta": theta,
            "rope_scaling": {key: scaling[key] for key in list(scaling)[2:]},
            "frequencies": values.tolist()}


print(json.dumps([frequencies(*case) for case in CASES], indent=1))
