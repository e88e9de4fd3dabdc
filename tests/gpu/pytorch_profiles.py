#!/usr/bin/env python3
"""What PyTorch and DeepSpeed do on the GPU at hand: rows for `zerolab validate --file`.

Trains the models of tests/parity/torch_memory.py, of which the memory of the software profiles was
counted, and those of transformers under DeepSpeed, each case in a process of its own on one GPU:
step time, and the peaks of the caching allocator. Random tokens; AdamW; gradients clipped at 1.
Needs PyTorch; cases of DeepSpeed need deepspeed and transformers, too.

    tests/gpu/pytorch_profiles.py OUTPUT.csv [--gpu h200] [--seconds 400] [--only PART] [--kernels FILE]
    tests/gpu/pytorch_profiles.py OUTPUT.csv --tiny      toy sizes on a CPU, to try the script itself

Cases of which OUTPUT.csv has rows are not run again. `--kernels`: one more step of each case under
the profiler; JSON of the seconds and counts of its kernels, and of CUDA's calls, which are named cuda..
A case that fails or outlasts its time is named on stderr and leaves no row.
"""

import argparse
import csv
import datetime
import json
import os
import pathlib
import select
import signal
import statistics
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parity"))
import deepspeed_memory  # noqa: E402
import torch_memory  # noqa: E402

LLAMA = dict(family="llama", heads=32, kv_heads=8, vocab=128256, tied=False)
GPT2 = dict(family="gpt2", vocab=50304)
MODELS = {
    "gpt2-124m": dict(GPT2, layers=12, hidden=768, heads=12, ffn=3072),
    "gpt2-124m-odd": dict(GPT2, layers=12, hidden=768, heads=12, ffn=3072, vocab=50257),
    "gpt2-355m": dict(GPT2, layers=24, hidden=1024, heads=16, ffn=4096),
    "gpt2-1.5b": dict(GPT2, layers=48, hidden=1600, heads=25, ffn=6400),
    "llama-1b": dict(LLAMA, layers=16, hidden=2048, ffn=8192),
    "llama-3b": dict(LLAMA, layers=28, hidden=3072, heads=24, ffn=8192),
    "llama-7b-of-8-layers": dict(LLAMA, layers=8, hidden=4096, kv_heads=32, ffn=11008, vocab=32000),
    "llama-8b-of-8-layers": dict(LLAMA, layers=8, hidden=4096, ffn=14336),
    "llama-70b-of-2-layers": dict(LLAMA, layers=2, hidden=8192, heads=64, ffn=28672),
}
TINY = {"gpt2": dict(layers=2, hidden=64, heads=4, ffn=256, vocab=512),
        "llama": dict(layers=2, hidden=64, heads=4, kv_heads=2, ffn=128, vocab=512)}


def cases():
    """Short and long in turn, so that what a spent time leaves is of every kind."""
    def case(software, model, sequence, micro_batch, recompute="none", stage=None):
        usual = {"torch-ddp": 0, "deepspeed": 2}.get(software, 3)
        return dict(software=software, model=model, sequence=sequence, micro_batch=micro_batch,
                    recompute=recompute, stage=usual if stage is None else stage)

    yield case("torch-ddp", "gpt2-124m", 1024, 16)
    yield case("torch-fsdp2", "llama-8b-of-8-layers", 8192, 1)
    yield case("torch-fsdp2-compile", "llama-8b-of-8-layers", 8192, 1)
    yield case("torch-ddp", "gpt2-1.5b", 1024, 8)
    yield case("torch-fsdp2", "llama-1b", 4096, 2)
    yield case("torch-ddp", "llama-1b", 2048, 4)
    yield case("torch-fsdp2-compile", "llama-1b", 4096, 2)
    yield case("deepspeed", "gpt2-1.5b", 1024, 8)
    yield case("deepspeed", "llama-1b", 4096, 2, stage=3)
    yield case("torch-ddp", "gpt2-124m", 16384, 1)
    yield case("torch-fsdp2", "llama-70b-of-2-layers", 4096, 1)
    yield case("torch-fsdp2-compile", "llama-70b-of-2-layers", 4096, 1)
    yield case("deepspeed", "gpt2-124m", 1024, 16, stage=0)
    yield case("torch-fsdp2", "llama-7b-of-8-layers", 32768, 1, "full")
    yield case("deepspeed", "llama-8b-of-8-layers", 4096, 1, "full", stage=3)
    yield case("torch-fsdp2", "llama-3b", 4096, 1, "selective")
    yield case("torch-ddp", "gpt2-355m", 512, 32)
    yield case("torch-fsdp2-compile", "gpt2-1.5b", 1024, 8)
    yield case("deepspeed", "gpt2-355m", 4096, 2, stage=1)
    yield case("torch-ddp", "gpt2-1.5b", 2048, 8, "full")
    yield case("torch-fsdp2", "gpt2-1.5b", 1024, 8)
    yield case("torch-ddp", "gpt2-124m-odd", 1024, 16)
    yield case("torch-fsdp2-compile", "llama-7b-of-8-layers", 16384, 1)
    yield case("deepspeed", "gpt2-124m", 512, 8, stage=3)
    yield case("torch-ddp", "gpt2-124m", 65536, 1, "full")
    yield case("torch-fsdp2", "llama-8b-of-8-layers", 2048, 4, "full")
    yield case("deepspeed", "llama-1b", 8192, 1, stage=1)
    yield case("torch-ddp", "gpt2-124m", 512, 4)
    yield case("torch-fsdp2", "llama-70b-of-2-layers", 16384, 1, "full")
    yield case("deepspeed", "gpt2-1.5b", 2048, 4, "full", stage=3)


def shape_of(case, tiny):
    shape = MODELS[case["model"]]
    return dict(shape, **TINY[shape["family"]]) if tiny else shape


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


class TorchSteps:
    """A training step of DDP or FSDP2 as torch_memory.py counted it, on real tensors."""

    def __init__(self, case, shape, device):
        autocast = case["software"] == "torch-ddp"
        with torch.device(device):
            self.model = torch_memory.Model(shape, autocast, case["recompute"], case["sequence"], 0)
        parts = self.model.parameters()
        if case["software"].endswith("compile"):
            for block in self.model.blocks:
                block.compile(fullgraph=True)
        if autocast:
            self.forward = torch.nn.parallel.DistributedDataParallel(self.model)
        else:
            mesh = torch.distributed.device_mesh.init_device_mesh(device, (1,))
            self.forward = torch_memory.shard(self.model, mesh)
        self.optimizer = torch.optim.AdamW(parts if autocast else self.forward.parameters(), lr=1e-4, foreach=True)
        self.autocast, self.device = autocast, device

    def step(self, tokens, targets):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.autocast):
            loss = self.forward(tokens, targets, 1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


class DeepSpeedSteps:
    """transformers' model under DeepSpeed: bf16, FusedAdam, everything else DeepSpeed's default."""

    def __init__(self, case, shape, device):
        import deepspeed
        with torch.device(device):
            model = deepspeed_memory.transformers_model(shape, case["sequence"])
        if case["recompute"] == "full":
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.train()
        self.engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
            "train_micro_batch_size_per_gpu": case["micro_batch"], "gradient_accumulation_steps": 1,
            "gradient_clipping": 1.0, "bf16": {"enabled": True}, "steps_per_print": 10**9,
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": device == "cpu"}},
            "zero_optimization": {"stage": case["stage"]}})

    def step(self, tokens, targets):
        loss = self.engine(input_ids=tokens, labels=tokens).loss
        self.engine.backward(loss)
        self.engine.step()
        return loss.detach()


def kernels_of(step, device):
    if device != "cuda":
        return {}
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        step()
        synchronize(device)
    sums = {}
    for event in profiler.profiler.kineto_results.events():
        entry = sums.setdefault(event.name()[:160], [0, 0])
        entry[0] += event.duration_ns() * 1e-9
        entry[1] += 1
    return dict(sorted(sums.items(), key=lambda each: -each[1][0])[:60])


def measured(case, shape, device, wants_kernels):
    """{"seconds", "allocated", "reserved", "loss", "kernels"} of one case, in a process of its own."""
    torch.manual_seed(1)
    batch = (case["micro_batch"], case["sequence"])
    data = [torch.randint(shape["vocab"], batch, device=device) for _ in range(2)]
    steps = (DeepSpeedSteps if case["software"] == "deepspeed" else TorchSteps)(case, shape, device)
    losses = []
    for _ in range(3):
        losses.append(float(steps.step(*data)))
    synchronize(device)
    result = {"losses": losses}

    def window(count):
        start = time.perf_counter()
        for _ in range(count):
            steps.step(*data)
        synchronize(device)
        return (time.perf_counter() - start) / count

    once = window(1)
    count = max(1, min(20, round(0.4 / once)))
    result["windows"] = [window(count) for _ in range(4)]
    result["seconds"] = statistics.median(result["windows"])
    if device == "cuda":
        result["allocated"] = torch.cuda.max_memory_allocated()
        result["reserved"] = torch.cuda.max_memory_reserved()
        free, total = torch.cuda.mem_get_info()
        result["used"] = total - free
    result["kernels"] = kernels_of(lambda: steps.step(*data), device) if wants_kernels else {}
    return result


def begin_group(device, number):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29600 + number), RANK="0", LOCAL_RANK="0",
                      WORLD_SIZE="1")
    dist.init_process_group("nccl" if device == "cuda" else "gloo", rank=0, world_size=1)


def in_its_own_process(work, seconds):
    """What work() returns, or {"error": ...}; fork is safe while this process has not touched CUDA."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setpgid(0, 0)
        try:
            answer = work()
        except BaseException as error:  # its only way out is the pipe
            answer = {"error": f"{type(error).__name__}: {str(error)[:600]}"}
        with os.fdopen(writer, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(writer)
    text, until = b"", time.monotonic() + seconds
    while select.select([reader], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(reader, 1 << 16)
        if not part:
            break
        text += part
    else:
        text = json.dumps({"error": f"longer than {seconds:.0f} s"}).encode()
    os.close(reader)
    for group in (child, -child):  # with the compiler's own processes
        try:
            os.kill(group, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os.waitpid(child, 0)
    return json.loads(text or b'{"error": "died"}')


COLUMNS = ("id,source,link,software,gpu,gpus_per_node,n_gpus,model,layers,hidden,heads,kv_heads,ffn,vocab,seq,"
           "global_batch,micro_batch,dp,zero_stage,recompute,precision,measured_quantity,value,unit,date,notes").split(",")


def id_of(case):
    return "-".join(str(case[key]) for key in ("software", "model", "sequence", "micro_batch", "recompute", "stage"))


def rows_of(case, shape, result, gpu, versions):
    name = id_of(case)
    row = dict(source=f"tests/gpu/pytorch_profiles.py on {gpu}", software=case["software"], gpu=gpu, gpus_per_node=1,
               n_gpus=1, model=case["model"], seq=case["sequence"], global_batch=case["micro_batch"],
               micro_batch=case["micro_batch"], dp=1, zero_stage=case["stage"] or "",
               recompute=case["recompute"].replace("none", ""), precision="bf16",
               date=datetime.date.today().isoformat(), notes=versions)
    row.update({key: shape.get(key, "") for key in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab")})
    yield dict(row, id=name + "-time", measured_quantity="iteration_time", unit="ms",
               value=f"{result['seconds'] * 1e3:.3f}")
    for key in ("allocated", "reserved"):
        if key in result:
            yield dict(row, id=f"{name}-{key}", measured_quantity=f"peak_memory_{key}", unit="GiB",
                       value=f"{result[key] / 2**30:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output")
    parser.add_argument("--gpu", default="h200", help="the catalogue's name of it")
    parser.add_argument("--seconds", type=float, default=400, help="for everything")
    parser.add_argument("--only", default="", help="a part of a case, as it is printed")
    parser.add_argument("--kernels", help="a JSON file of every case's kernels")
    parser.add_argument("--tiny", action="store_true")
    arguments = parser.parse_args()
    device, until = "cpu" if arguments.tiny else "cuda", time.monotonic() + arguments.seconds
    versions = f"PyTorch {torch.__version__}"
    kernels = {}
    output = pathlib.Path(arguments.output)
    done = set()
    if output.exists():
        with open(output, newline="") as file:
            done = {row["id"] for row in csv.DictReader(file)}
    with open(output, "a", newline="") as file:
        output = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        if not done:
            output.writeheader()
        for number, case in enumerate(cases()):
            name = " ".join(str(value) for value in case.values())
            left = until - time.monotonic()
            if arguments.only not in name or left < 5 or id_of(case) + "-time" in done:
                continue
            if arguments.tiny:
                case = dict(case, sequence=64, micro_batch=1)
            shape = shape_of(case, arguments.tiny)

            def work():
                begin_group(device, number)
                return measured(case, shape, device, arguments.kernels is not None)

            start = time.monotonic()
            result = in_its_own_process(work, min(left, 75))
            took = time.monotonic() - start
            if "error" in result:
                print(f"{name}: {result['error']} ({took:.0f} s)", file=sys.stderr, flush=True)
                continue
            kernels[name] = result.pop("kernels")
            print(name, json.dumps(result), f"({took:.0f} s)", flush=True)
            output.writerows(rows_of(case, shape, result, arguments.gpu, versions))
            file.flush()
            if arguments.kernels:
                pathlib.Path(arguments.kernels).write_text(json.dumps(kernels, indent=1))


if __name__ == "__main__":
    main()
