#!/usr/bin/env python3
"""Writes tests/golden/models/zoo_steps.json: losses of twenty AdamW steps by transformers, of each tiny decoder.

usage: zoo_steps.py [FILE]      needs torch and transformers (5.23.0 made the committed file)

Each model takes the two sequences of its golden.json at every step, in fp32, without dropout, with eager attention.
The row of a padding token trains like any other (padding_idx off), as it does here.
"""
import json
import pathlib
import sys

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZOO = ROOT / "tests/golden/models/zoo"
STEPS, RATE, DECAY, CLIP = 20, 2e-4, 0.01, 1.0


def losses(folder):
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    model.eval()
    model.get_input_embeddings().padding_idx = None
    ids = torch.tensor(json.loads((folder / "golden.json").read_text())["input_ids"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    found = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        found.append(loss.item())
    return found


def main():
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ZOO.parent / "zoo_steps.json"
    names = sorted(each.name for each in ZOO.iterdir() if (each / "golden.json").exists())
    decoders = [name for name in names if not any(kind in name for kind in ("bert", "bf16"))]
    found = {
        "made_by": f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}",
        "steps": STEPS,
        "lr": RATE,
        "weight_decay": DECAY,
        "gradient_clipping": CLIP,
        "losses": {name: losses(ZOO / name) for name in decoders},
    }
    target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
