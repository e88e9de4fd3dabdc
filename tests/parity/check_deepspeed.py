#!/usr/bin/env python3
"""What DeepSpeed itself makes of configuration files: losses, loss scales, learning rates.

    mkdir /tmp/parity && ZL_PARITY_WEIGHTS=/tmp/parity build/tests/test_parity
    python3 tests/parity/check_deepspeed.py /tmp/parity tests/golden/parity/deepspeed.json

Trains the gpt2 of parity_test.cpp on two processes of the CPU, with the files below given to
deepspeed.initialize as they are, and writes what deepspeed_test.cpp compares with. Needs torch,
numpy, safetensors and deepspeed (0.19.8); run by hand. DeepSpeed refuses fp16 on CPUs, though they
compute in it: that one check is answered here.
"""
import json
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from generate import Decoder, tokens_of

STEPS, RANKS, ACCUMULATION = 50, 2, 2

ADAM = {"type": "AdamW", "params": {"lr": 1e-3, "betas": [0.9, 0.95], "weight_decay": 0.1,
                                    "torch_adam": True}}
WARMUP = {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-3, "warmup_num_steps": 10,
                                         "warmup_type": "linear"}}
CYCLE = {"cycle_min_lr": 1e-4, "cycle_max_lr": 1e-3, "cycle_first_step_size": 12,
         "cycle_second_step_size": 9, "decay_step_size": 5, "decay_lr_rate": 0.1,
         "decay_mom_rate": 0.01}


def config(stage, **more):
    return {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": ACCUMULATION,
            "optimizer": ADAM, "zero_optimization": {"stage": stage}, **more}


RUNS = {
    "fp32": config(1, scheduler=WARMUP),
    "bf16": config(2, scheduler=WARMUP, bf16={"enabled": True}),
    "fp16": config(2, scheduler=WARMUP, fp16={
        "enabled": True, "initial_scale_power": 30, "loss_scale_window": 5}),
    "fp16_stage_3": config(3, scheduler=WARMUP, fp16={
        "enabled": True, "initial_scale_power": 26, "loss_scale_window": 12, "hysteresis": 3}),
    "one_cycle": config(1, scheduler={"type": "OneCycle", "params": CYCLE}),
    "one_cycle_stairs": config(1, scheduler={"type": "OneCycle", "params": {
        **CYCLE, "cycle_first_stair_count": 3, "cycle_second_stair_count": 2}}),
}


class Model(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.names = list(weights)
        self.values = torch.nn.ParameterList(torch.nn.Parameter(weights[n]) for n in self.names)

    def forward(self, tokens):
        x = Decoder(dict(zip(self.names, self.values)), "gpt2").logits(tokens)
        return F.cross_entropy(x.float().flatten(0, 1), tokens[:, 1:].flatten())


def train(rank, name, weights, result):
    import deepspeed
    from deepspeed.accelerator import get_accelerator

    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT="29577")
    torch.set_num_threads(1)
    get_accelerator().is_fp16_supported = lambda: True
    deepspeed.init_distributed(dist_backend="gloo")
    model = Model(load_file(weights))
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
                                      config=RUNS[name])
    out = {"loss": [], "scale": [], "lr": []}
    for step in range(STEPS):
        out["lr"].append(engine.optimizer.param_groups[0]["lr"])
        scale = getattr(engine.optimizer, "cur_scale", None)
        scale = engine.optimizer.loss_scale if scale is None else scale
        total = torch.zeros(())
        for micro in range(ACCUMULATION):
            loss = engine(tokens_of(step)[rank * ACCUMULATION + micro][None])
            engine.backward(loss)
            total += loss.detach().float() / (RANKS * ACCUMULATION)
            engine.step()
        torch.distributed.all_reduce(total)
        out["loss"].append(total.item())
        out["scale"].append(float(scale))
    if rank == 0:
        with open(result, "w") as file:
            json.dump(out, file)


def main(source, target, *names):
    import deepspeed

    golden = {"deepspeed": deepspeed.__version__, "torch": torch.__version__, "runs": {}}
    if names:
        with open(target) as file:
            golden["runs"] = json.load(file)["runs"]
    for name in names or RUNS:
        result = target + ".part"
        torch.multiprocessing.spawn(train, (name, source + "/gpt2.safetensors", result), RANKS)
        with open(result) as file:
            golden["runs"][name] = {"config": RUNS[name], **json.load(file)}
        os.remove(result)
        run = golden["runs"][name]
        print(f"{name}: loss {run['loss'][0]:.6f} -> {run['loss'][-1]:.6f}, scale "
              f"{run['scale'][0]:.0f} -> {run['scale'][-1]:.0f}")
    with open(target, "w") as file:
        file.write(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
