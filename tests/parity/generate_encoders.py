#!/usr/bin/env python3
"""Golden training runs of encoders for tests/parity, made by transformers.

    python3 tests/parity/generate_encoders.py tests/golden/models/zoo tests/golden/parity

Trains the zoo's bert_seqcls and bert_mlm for 50 steps in fp32 on the texts and by the recipe of
encoder_parity_test.cpp, and writes losses and gradient norms. Needs torch and transformers (made
with 2.15 and 5.23); the build and the tests do not need this script.
"""
import json
import pathlib
import sys

import torch
from transformers import BertForMaskedLM, BertForSequenceClassification

# As in encoder_parity_test.cpp.
STEPS, BATCH, LENGTH, MASK = 50, 4, 12, 2
LR, WARMUP, BETAS, EPSILON, DECAY, CLIP = 1e-3, 10, (0.9, 0.999), 1e-8, 0.01, 1.0


def token(step, row, place):
    return 3 + (step * 31 + row * 17 + place * (1 + row % 3) + place * place // 7) % 45


def batch(step, masked):
    ids, segments, lengths, targets = [], [], [], []
    for row in range(BATCH):
        length = 5 + (row * 3 + step) % 8
        lengths.append([1] * length + [0] * (LENGTH - length))
        text = [token(step, row, p) if p < length else 0 for p in range(LENGTH)]
        segments.append([1 if p < length and 2 * p > length else 0 for p in range(LENGTH)])
        if masked:
            told = [0 < p < length and (p + row + step) % 5 == 2 for p in range(LENGTH)]
            targets.append([t if m else -100 for t, m in zip(text, told)])
            text = [MASK if m else t for t, m in zip(text, told)]
        else:
            targets.append(text[1] % 3)
        ids.append(text)
    return [torch.tensor(each) for each in (ids, lengths, segments, targets)]


def train(model, masked):
    model.eval()  # without dropout
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=BETAS, eps=EPSILON,
                                  weight_decay=DECAY)
    losses, norms = [], []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = LR * min(max(step - 1, 0) / WARMUP, 1.0)
        ids, mask, segments, targets = batch(step, masked)
        loss = model(input_ids=ids, attention_mask=mask, token_type_ids=segments,
                     labels=targets).loss
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        optimizer.step()
        losses.append(loss.item())
    return {"loss": losses, "grad_norm": norms}


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    zoo, out = map(pathlib.Path, sys.argv[1:3])
    golden = {}
    for name, kind in (("bert_seqcls", BertForSequenceClassification), ("bert_mlm", BertForMaskedLM)):
        model = kind.from_pretrained(zoo / name, attn_implementation="eager")
        golden[name] = train(model, kind is BertForMaskedLM)
    (out / "encoders.json").write_text(json.dumps(golden, indent=1) + "\n")


main()
