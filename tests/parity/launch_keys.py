#!/usr/bin/env python3
"""Whether the software itself takes what `zerolab plan -o SOFTWARE` writes.

    pip install deepspeed==0.19.8 accelerate==1.15.0 torch tyro datasets torchdata spmd_types six
    pip install --no-deps --target tt01 torchtitan==0.1.0    # tt02: 0.2.2, tt03: 0.3.0
    git clone -b core_v0.16.1 https://github.com/NVIDIA/Megatron-LM
    python3 tests/parity/launch_keys.py --zerolab build/zerolab --torchtitan tt01 tt02 tt03 \\
        --megatron Megatron-LM --rates build/tests/test_planner

Run by hand. Plans of several kinds, and with --rates strategies whose learning rates rise and stay,
fall in a line or down a cosine, are written and given to each parser: DeepSpeedConfig 0.19.8;
the argparse table and validate_args of Megatron-LM core_v0.16.1 (PyPI's megatron-core 0.16.1 has no
arguments), as on H100s; the ConfigManager of torchtitan 0.1.0 and 0.2.2 for TOML, of 0.3.0, which
reads no TOML any more, for Python; accelerate 1.15.0's ClusterConfig, its launcher's parser and the
FSDP2 plugin made of its environment. Values are compared with the plan's where the parser keeps
them. What is not given is left out and said.
"""
import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile

PLANS = {  # name: (what it is limited to, who can say it)
    "zero-3": ("zero=3,tensor=1,pipeline=1,offload=none,replicate=1,recompute=full",
               "deepspeed megatron torchtitan torchtitan-python accelerate"),
    "zero-2": ("zero=2,tensor=1,pipeline=1,offload=none,replicate=1,recompute=none",
               "deepspeed megatron torchtitan torchtitan-python accelerate"),
    "offload": ("zero=3,tensor=1,pipeline=1,offload=all,replicate=1,recompute=full",
                "deepspeed torchtitan torchtitan-python accelerate"),
    "copies": ("zero=3,tensor=1,pipeline=1,offload=none,replicate=2,recompute=full",
               "megatron torchtitan torchtitan-python accelerate"),
    "ddp": ("zero=0,tensor=1,pipeline=1,recompute=none",
            "deepspeed megatron torchtitan torchtitan-python accelerate"),
    "tensor": ("zero=2,tensor=2,sequence_parallel=true,pipeline=1,recompute=full,replicate=1,"
               "offload=none", "megatron torchtitan torchtitan-python"),
    "mesh": ("zero=1,tensor=2,sequence_parallel=true,pipeline=2,schedule=interleaved,"
             "virtual_stages=2,recompute=full,replicate=1", "megatron"),
    "products": ("zero=3,tensor=1,pipeline=1,offload=none,replicate=1,recompute=selective:products",
                 "torchtitan torchtitan-python"),
    "selective": ("zero=1,tensor=2,pipeline=2,schedule=1f1b,recompute=selective:attention,"
                  "replicate=1", "megatron"),
}
PIPELINES = {  # of a model whose embeddings are not tied, as torchtitan wants it
    "pipeline": ("zero=1,tensor=2,sequence_parallel=true,pipeline=2,schedule=interleaved,"
                 "virtual_stages=2,recompute=full,replicate=1,micro_batch=1",
                 "torchtitan torchtitan-python"),
    "zb-v": ("zero=1,tensor=2,sequence_parallel=true,pipeline=2,schedule=zb-v,recompute=full,"
             "replicate=1,micro_batch=1", "torchtitan torchtitan-python"),
}
RANKS = 8
ENDINGS = {"deepspeed": ".json", "accelerate": ".yaml", "megatron": ".sh", "torchtitan": ".toml",
           "torchtitan-python": ".py"}


def written(zerolab, model, limits, software):
    command = [zerolab, "plan", model, "--cluster", f"{RANKS}xh100", "--global-batch", "64",
               "--sequence-length", "1024", "--top", "1", "--constrain", limits, "-o", software]
    if "products" in limits:  # of torchtitan alone
        command += ["--software", "torch-fsdp2"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-600:]}")
    return done.stdout


def rates_of(plan):
    """DeepSpeed's name of the way that rates go, and its parameters."""
    scheduler = plan.get("scheduler", {})
    return scheduler.get("type"), scheduler.get("params", {})


def check_deepspeed(path, plan):
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    from deepspeed.runtime import config

    config.dist.get_rank = lambda: 0  # no process group

    class Ranks:  # the world that the file is for

        def get_data_parallel_world_size(self):
            return RANKS

    read = config.DeepSpeedConfig(path, mpu=Ranks())
    assert read.zero_config.stage == plan["zero_optimization"]["stage"], read.zero_config.stage
    assert read.train_micro_batch_size_per_gpu == plan["train_micro_batch_size_per_gpu"]
    assert read.gradient_accumulation_steps == plan["gradient_accumulation_steps"]
    if "scheduler" in plan:
        from deepspeed.runtime import lr_schedules
        from torch import nn, optim

        assert read.scheduler_name == plan["scheduler"]["type"]
        optimizer = optim.AdamW(nn.Linear(1, 1).parameters(), lr=plan["optimizer"]["params"]["lr"])
        getattr(lr_schedules, read.scheduler_name)(optimizer, **read.scheduler_params)


def check_accelerate(path, plan):
    from accelerate.commands.config.config_args import ClusterConfig
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils import FullyShardedDataParallelPlugin
    from accelerate.utils.launch import prepare_multi_gpu_env

    ClusterConfig.from_yaml_file(path)
    args = launch_command_parser().parse_args(["--config_file", path, "train.py"])
    args, _, _ = _validate_launch_command(args)
    os.environ.update(prepare_multi_gpu_env(args))
    stage = plan["zero_optimization"]["stage"]
    assert args.use_fsdp == (stage > 0)
    if stage > 0:
        plugin = FullyShardedDataParallelPlugin()
        assert plugin.fsdp_version == 2
        assert plugin.reshard_after_forward == (stage == 3), plugin.reshard_after_forward
        assert plugin.activation_checkpointing == (plan["x-zerolab"]["recompute"] == "full")


def check_megatron(path, plan, root):
    if root not in sys.path:
        sys.path.insert(0, root)
    from megatron.training import arguments

    said = subprocess.run(["bash", "-c", "torchrun() { echo $CUDA_DEVICE_MAX_CONNECTIONS; "
                           "printf '%s\\n' \"$@\"; }; . " + path + " --train-iters 10 --mock-data "
                           "--tokenizer-type NullTokenizer"],
                          capture_output=True, text=True, check=True).stdout.split("\n")
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = said[0]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_megatron_arguments(parser)
    args = parser.parse_args(said[said.index("pretrain_gpt.py") + 1:-1])
    parallel = plan["x-zerolab"].get("parallel", {})
    assert args.tensor_model_parallel_size == parallel.get("tensor", 1)
    assert args.pipeline_model_parallel_size == parallel.get("pipeline", 1)
    assert args.micro_batch_size == plan["train_micro_batch_size_per_gpu"]
    assert args.use_distributed_optimizer == (plan["zero_optimization"]["stage"] > 0)
    assert args.lr == plan["optimizer"]["params"]["lr"]
    kind, rates = rates_of(plan)
    assert args.lr_decay_style == {"WarmupDecayLR": "linear", "WarmupCosineLR": "cosine"}.get(
        kind, "constant")
    assert args.lr_warmup_iters == rates.get("warmup_num_steps", 0)
    assert args.lr_decay_iters == rates.get("total_num_steps")
    assert abs((args.min_lr or 0) - args.lr * rates.get("cos_min_ratio", 0)) < 1e-12
    args.rank, args.world_size = 0, RANKS
    arguments.get_device_arch_version = lambda: 9  # an H100's
    with contextlib.redirect_stdout(io.StringIO()):
        arguments.validate_args(args)
    assert args.virtual_pipeline_model_parallel_size == (
        parallel.get("virtual_stages") if parallel.get("virtual_stages", 1) > 1 else None)


def check_torchtitan(path, plan, root, old):
    if root not in sys.path:
        sys.path.insert(0, root)
    if old:
        try:
            from torchtitan.config import ConfigManager
        except ImportError:
            from torchtitan.config_manager import ConfigManager
        read = ConfigManager().parse_args(["--job.config_file", path])
        mode = read.activation_checkpoint.mode
        if mode == "selective":
            mode += {"op": ":products"}[read.activation_checkpoint.selective_ac_option]
    else:
        from torchtitan.config import ConfigManager

        folder, name = os.path.split(path)
        sys.path.insert(0, folder)
        read = ConfigManager().parse_args(["--module", name[:-3], "--config", "plan"])
        mode = {"NoneType": "none", "FullAC": "full", "SelectiveAC": "selective:products"}[
            type(read.activation_checkpoint).__qualname__.split(".")[0]]
    parallel = plan["x-zerolab"].get("parallel", {})
    assert read.parallelism.tensor_parallel_degree == parallel.get("tensor", 1)
    assert read.parallelism.pipeline_parallel_degree == parallel.get("pipeline", 1)
    assert read.training.global_batch_size == 64
    assert mode == plan["x-zerolab"]["recompute"], mode
    kind, rates = rates_of(plan)
    scheduler = read.lr_scheduler
    assert scheduler.warmup_steps == rates.get("warmup_num_steps", 0), scheduler
    if kind in ("WarmupDecayLR", "WarmupCosineLR"):
        assert read.training.steps == rates["total_num_steps"], read.training.steps
        assert scheduler.decay_type == ("linear" if kind == "WarmupDecayLR" else "cosine")
        # The file does not name 0.1.0, which has another word for it.
        if hasattr(scheduler, "min_lr_factor"):
            assert scheduler.min_lr_factor == rates.get("cos_min_ratio", 0), scheduler
    else:
        assert scheduler.decay_ratio == 0, scheduler


def check(kind, root, folder):
    """Every file of the software in the folder; how many are not taken."""
    failed = 0
    ending = ENDINGS[kind]
    for path in sorted(p for p in os.listdir(folder) if p.endswith(ending)):
        name = path[:-len(ending)]
        with open(os.path.join(folder, name + ".plan")) as file:
            plan = json.load(file)
        path = os.path.join(folder, path)
        try:
            if kind == "deepspeed":
                check_deepspeed(path, plan)
            elif kind == "accelerate":
                check_accelerate(path, plan)
            elif kind == "megatron":
                check_megatron(path, plan, root)
            else:
                check_torchtitan(path, plan, root, kind == "torchtitan")
            print(f"{kind:18} {name:10} {root}: taken")
        except (Exception, SystemExit) as error:
            failed += 1
            print(f"{kind:18} {name:10} {root}: {type(error).__name__}: {error}")
    return failed


def checkers(options, software):
    """The roots that a file is given to: a parser each, in a process of its own."""
    if software == "megatron":
        return [options.megatron] if options.megatron else []
    if software == "torchtitan":
        return [r for r in options.torchtitan if not is_python_only(r)]
    if software == "torchtitan-python":
        return [r for r in options.torchtitan if is_python_only(r)]
    return ["-"]


def is_python_only(root):
    return os.path.exists(os.path.join(root, "torchtitan/models/llama3/config_registry.py"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--zerolab", default="build/zerolab")
    parser.add_argument("--torchtitan", nargs="*", default=[])
    parser.add_argument("--megatron")
    parser.add_argument("--rates", help="build/tests/test_planner")
    parser.add_argument("--check", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.check:
        return check(*options.check)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for model, plans in (("qwen3-0.6b", PLANS), ("llama3-8b", PIPELINES)):
            for name, (limits, software) in plans.items():
                name = name.replace("-", "_")  # also of a Python module
                with open(os.path.join(folder, name + ".plan"), "w") as file:
                    file.write(written(options.zerolab, model, limits, "zerolab"))
                for each in software.split():
                    with open(os.path.join(folder, name + ENDINGS[each]), "w") as file:
                        file.write(written(options.zerolab, model, limits, each))
        if options.rates:
            subprocess.run([options.rates, "--gtest_filter=LearningRates.ComeBackFromAScript"],
                           env=dict(os.environ, ZL_LAUNCH_FILES=folder), check=True,
                           stdout=subprocess.DEVNULL)
        else:
            print("learning rates: not checked: no --rates given")
        for software in ENDINGS:
            roots = checkers(options, software)
            if not roots:
                print(f"{software}: not checked: no parser given")
            for root in roots:
                failed += subprocess.run([sys.executable, __file__, "--check", software, root,
                                          folder]).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
