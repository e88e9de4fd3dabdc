#!/usr/bin/env python3
"""What one compiled block keeps for its backward: tests/golden/memory/torch_compiled.json.

The blocks of torch_memory.py, one each, through AOTAutograd with Inductor's decompositions and its
min-cut partitioner (fake tensors, no GPU): the storages that the forward graph hands to the backward,
without weights. `weights`: 16-bit copies of these, of autocast. Made with PyTorch 2.15.0.

    tests/parity/torch_compiled.py [--output FILE]
"""

import argparse
import json

import torch
from functorch.compile import aot_function, min_cut_rematerialization_partition
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses.fake_tensor import FakeTensorMode

from torch_memory import MODELS, Gpt2Block, LlamaBlock

TOKENS = 640  # no width of a model: shapes tell activations from weights


def kept(graph, shapes):
    """Bytes of what the forward graph returns beside its first output: activations, weights."""
    (output,) = [node for node in graph.nodes if node.op == "output"]
    inputs = [node.meta["val"] for node in graph.nodes if node.op == "placeholder"]
    # Weights themselves are held anyway; the table of positions all blocks share.
    seen = {v.untyped_storage()._cdata for v in inputs if tuple(v.shape) in shapes}
    sums = {"activations": 0, "weights": 0}
    for node in output.args[0][1:]:
        value = node.meta["val"]
        storage = value.untyped_storage()
        if value.is_complex() or storage._cdata in seen:
            continue
        seen.add(storage._cdata)
        of_weight = tuple(value.shape) in shapes
        sums["weights" if of_weight else "activations"] += storage.nbytes()
    return sums


def compiled(name, autocast):
    config = MODELS[name]
    torch.set_default_dtype(torch.float32 if autocast else torch.bfloat16)
    llama = config["family"] == "llama"
    results = []
    with FakeTensorMode(allow_non_fake_inputs=True):
        block = (LlamaBlock if llama else Gpt2Block)(config, autocast)
        names, weights = zip(*block.named_parameters())
        shapes = {tuple(w.shape) for w in weights} | {tuple(w.shape[::-1]) for w in weights}
        arguments = [torch.empty(1, TOKENS, config["hidden"], requires_grad=True)]
        if llama:
            pairs = config["hidden"] // config["heads"] // 2
            arguments.append(torch.ones(1, TOKENS, 1, pairs, dtype=torch.complex64))

        def call(*values):
            own = dict(zip(names, values))
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                return torch.func.functional_call(block, own, values[len(names):])

        def forward(module, _):
            results.append(kept(module.graph, shapes))
            return module

        aot_function(call, fw_compiler=forward, bw_compiler=lambda module, _: module,
                     partition_fn=min_cut_rematerialization_partition,
                     decompositions=select_decomp_table())(*weights, *arguments)
    return results[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="the file; else nothing is written")
    arguments = parser.parse_args()
    rows = []
    for name in MODELS:
        for autocast in (False, True):
            rows.append({"model": name, "tokens": TOKENS, "autocast": autocast,
                         "bytes": compiled(name, autocast)})
            print(json.dumps(rows[-1]))
    if arguments.output:
        with open(arguments.output, "w") as out:
            lines = ",\n".join(json.dumps(row) for row in rows)
            out.write(f'{{"torch": "{torch.__version__}", "blocks": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
