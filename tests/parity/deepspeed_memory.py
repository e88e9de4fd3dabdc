#!/usr/bin/env python3
"""What DeepSpeed holds while it trains models of transformers: tests/golden/memory/deepspeed.json.

No GPU is needed: small models run on the processor, one rank among others that are only pretended
(PyTorch's fake process group), and PyTorch's profiler adds up what its allocator gives out. The peak
of the third step, with the optimizer's states there since the first; bytes of a model are the same
on a GPU but for scratch inside of kernels. Optimizer: torch.optim.AdamW(fused=True), which like
DeepSpeed's FusedAdam needs no scratch.

    DS_ACCELERATOR=cpu tests/parity/deepspeed_memory.py [--only PART] [--live COUNT] [--output FILE]

`--live`: of each case, what was there at the peak, by the op that took it.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

import torch_memory

MODELS = {
    "gpt2": dict(family="gpt2", layers=4, hidden=256, heads=4, vocab=2048, ffn=1024),
    "gpt2-vocab": dict(family="gpt2", layers=2, hidden=128, heads=4, vocab=16384, ffn=512),
    "llama": dict(family="llama", layers=4, hidden=256, heads=8, kv_heads=2, vocab=2048, ffn=704, tied=False),
    "llama-vocab": dict(family="llama", layers=2, hidden=128, heads=4, kv_heads=2, vocab=16384, ffn=352,
                        tied=False),
}


def transformers_model(shape, sequence):
    """A causal model with random weights, its loss and everything else as transformers has it."""
    import transformers
    if shape["family"] == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=shape["vocab"], n_positions=sequence, n_embd=shape["hidden"], n_layer=shape["layers"],
            n_head=shape["heads"], n_inner=shape["ffn"], resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
            bos_token_id=0, eos_token_id=0, use_cache=False))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=shape["vocab"], hidden_size=shape["hidden"], intermediate_size=shape["ffn"],
        num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"],
        num_key_value_heads=shape["kv_heads"], max_position_embeddings=sequence, rms_norm_eps=1e-5,
        tie_word_embeddings=False, use_cache=False))


def deepspeed_config(case):
    """Every other setting is DeepSpeed's default."""
    return {"train_micro_batch_size_per_gpu": case["micro_batch"], "gradient_clipping": 1.0,
            "gradient_accumulation_steps": case["accumulation"], "bf16": {"enabled": True},
            "steps_per_print": 10**9, "zero_allow_untested_optimizer": True,
            "zero_optimization": {"stage": case["stage"], **case["zero"]}}


def engine_of(case, model, optimizer):
    import deepspeed
    if case["recompute"] == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    return deepspeed.initialize(model=model, model_parameters=model.parameters(), optimizer=optimizer,
                                config=deepspeed_config(case), dist_init_required=False)[0]


def train_step(engine, tokens, accumulation):
    for _ in range(accumulation):
        loss = engine(input_ids=tokens, labels=tokens).loss
        engine.backward(loss)
        engine.step()
    return loss.detach()


def trace_of(case):
    """Events of a profiled run, from the model's making on; its third step is named."""
    shape = MODELS[case["model"]]
    tokens = torch.randint(shape["vocab"], (case["micro_batch"], case["sequence"]))
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        model = transformers_model(shape, case["sequence"])
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        engine = engine_of(case, model, optimizer)
        accumulation = case["accumulation"]
        for _ in range(2):
            train_step(engine, tokens, accumulation)
        with torch.profiler.record_function("the step"):
            train_step(engine, tokens, accumulation)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path) as file:
            return json.load(file)["traceEvents"]


def innermost(ops, time):
    inside = [op for op in ops if op["ts"] <= time < op["ts"] + op["dur"]]
    named = [op["name"] for op in sorted(inside, key=lambda op: op["dur"])]
    return " < ".join(named[:3]) if named else "outside"


def peak_of(events, live_wanted):
    """(bytes, what was alive by the op that took it) at the peak of the step."""
    (step,) = [event for event in events if event.get("name") == "the step" and event.get("ph") == "X"
               and event.get("cat") == "user_annotation"]
    memory = sorted((event for event in events if event.get("name") == "[memory]"), key=lambda event: event["ts"])
    most, alive, at_peak = 0, {}, {}
    for event in memory:
        bytes_, address = event["args"]["Bytes"], event["args"]["Addr"]
        if bytes_ > 0:
            alive[address] = event
        else:
            alive.pop(address, None)
        total = event["args"]["Total Allocated"]
        if step["ts"] <= event["ts"] <= step["ts"] + step["dur"] and total > most:
            most = total
            at_peak = dict(alive) if live_wanted else {}
    ops = [event for event in events if event.get("ph") == "X" and "dur" in event] if at_peak else []
    sums = {}
    for event in at_peak.values():
        own = [op for op in ops if op.get("tid") == event["tid"]]
        entry = sums.setdefault(innermost(own, event["ts"]), [0, 0])
        entry[0] += event["args"]["Bytes"]
        entry[1] += 1
    return most, sorted(sums.items(), key=lambda each: -each[1][0])


def held(case, live):
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(case["ranks"]), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT="29555")
    dist.init_process_group("fake", rank=0, world_size=case["ranks"], store=FakeStore())
    peak, by_op = peak_of(trace_of(case), live > 0)
    return peak, by_op[:live]


def cases():
    def case(model, stage, zero, ranks=8, sequence=128, micro_batch=4, recompute="none", accumulation=1):
        return dict(model=model, stage=stage, ranks=ranks, sequence=sequence, micro_batch=micro_batch,
                    recompute=recompute, accumulation=accumulation, zero=zero)

    # Buckets and distances as small as the models.
    bucket = {"reduce_bucket_size": 100_000}
    gathers = {"stage3_param_persistence_threshold": 1000, "stage3_prefetch_bucket_size": 100_000}
    for stage in (0, 1, 2, 3):
        zero = {**bucket, **(gathers if stage == 3 else {})}
        yield case("gpt2", stage, zero)
        yield case("llama", stage, zero)
        yield case("gpt2", stage, zero, ranks=1)
        yield case("llama-vocab", stage, zero, sequence=64)
        yield case("gpt2-vocab", stage, zero, micro_batch=1)
        yield case("llama", stage, zero, micro_batch=8, recompute="full")
        yield case("llama", stage, zero, accumulation=2)
        yield case("llama", stage, zero, micro_batch=16)
        yield case("gpt2", stage, zero, sequence=32, micro_batch=1)
    for stage in (1, 2):
        yield case("gpt2", stage, {**bucket, "overlap_comm": True}, sequence=32, micro_batch=1)
        yield case("gpt2", stage, {"reduce_bucket_size": 10_000_000}, sequence=32, micro_batch=1)
    yield case("llama", 3, {"reduce_bucket_size": 10_000_000, **gathers})
    for live in (500_000, 1_000_000, 2_000_000):
        for distance in (0, 4_000_000):
            zero = {**bucket, **gathers, "stage3_max_live_parameters": live, "stage3_max_reuse_distance": distance}
            yield case("gpt2", 3, zero)
            yield case("llama", 3, zero, micro_batch=8, recompute="full")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a part of a case, as it is printed")
    parser.add_argument("--live", type=int, default=0, help="lines of what was there at the peak")
    parser.add_argument("--output", help="the file; else nothing is written")
    arguments = parser.parse_args()
    import deepspeed
    rows = []
    for case in cases():
        name = json.dumps(case)
        if arguments.only not in name:
            continue
        with multiprocessing.get_context("fork").Pool(1) as fresh:  # DeepSpeed keeps its groups for good
            peak, live = fresh.apply(held, (case, arguments.live))
        rows.append({**case, "bytes": peak})
        print(name, round(peak / 2**20, 2), flush=True)
        for what, (bytes_, count) in live:
            print(f"  {bytes_:>12} {count:>5}  {what}")
    if arguments.output:
        import transformers
        versions = {"deepspeed": deepspeed.__version__, "transformers": transformers.__version__,
                    "torch": torch.__version__}
        torch_memory.write_cases(arguments.output, {"versions": versions, "models": MODELS}, rows)


if __name__ == "__main__":
    sys.exit(main())
