#!/usr/bin/env python3
"""The planner beside Calculon and SimuMax on the same work, as programs side by side.

    git clone https://github.com/calculon-ai/calculon
    git clone https://github.com/MooreThreads/SimuMax
    pip install psutil numpy pandas matplotlib sympy tabulate graphviz tqdm
    python3 tests/parity/plan_beside_peers.py --calculon calculon --simumax SimuMax

Run by hand. The work: GPT-3 175B on 128 A100 of 80 GB, 256 sequences of 2,048 tokens a step, 1F1B,
the optimizer's state sharded, nothing or whole layers recomputed, sequences cut where tensors are.
Every mesh and micro-batch of it is given to each; a plan is the mesh, its micro-batch and what it
recomputes. Printed: microseconds of processor for a configuration, of this program's closed forms
alone and of a whole search (bounds, profiles, closed forms and recordings of the best, over all
plans of any kind that can run), and how many of the ten fastest that fit two of them have in
common. SimuMax's machine is the PCIe A100 of its examples; what is not given is left out and said.
"""
import argparse
import contextlib
import io
import json
import logging
import os
import re
import subprocess
import sys
import time

GPUS, BATCH, SEQUENCE, LAYERS = 128, 256, 2048, 96
TENSOR, MICRO = (1, 2, 4, 8), (1, 2, 4, 8)
RECOMPUTE = ("none", "full")
TOP = 10


def plans():
    """(tensor, pipeline, micro-batch, recompute) of all that divide."""
    for tensor in TENSOR:
        for pipeline in (p for p in range(1, LAYERS + 1) if LAYERS % p == 0):
            if GPUS % (tensor * pipeline):
                continue
            data = GPUS // (tensor * pipeline)
            for micro in (m for m in MICRO if BATCH % (data * m) == 0):
                for recompute in RECOMPUTE:
                    yield tensor, pipeline, micro, recompute


class Calculon:
    name = "Calculon"

    def __init__(self, root):
        sys.path.insert(0, root)
        import calculon
        from calculon.llm.llm import Llm
        from calculon.system import System

        def read(path):
            return calculon.io.read_json_file(os.path.join(root, path))
        self.llm, self.log = Llm, logging.Logger("peer")
        self.app = Llm.Application(read("models/gpt3-175B.json"))
        self.system = System(read("systems/a100_80g.json"))

    def seconds(self, plan):
        """Of a step; None: it does not fit, or is refused."""
        tensor, pipeline, micro, recompute = plan
        data = GPUS // (tensor * pipeline)
        execution = {
            "num_procs": GPUS, "tensor_par": tensor, "pipeline_par": pipeline, "data_par": data,
            "tensor_par_net": 0, "pipeline_par_net": 1 if pipeline > 1 else 0,
            "data_par_net": 1 if data > 1 else 0, "batch_size": BATCH, "microbatch_size": micro,
            "datatype": "float16", "fused_activation": True, "attention_type": "multihead",
            "activation_recompute": recompute, "pipeline_interleaving": 1,
            "optimizer_sharding": data > 1,
            "tensor_par_comm_type": "rs_ag" if tensor > 1 else "ar", "tensor_par_overlap": "none",
            "seq_par_ag_redo": False, "data_par_overlap": data > 1, "weight_offload": False,
            "activations_offload": False, "optimizer_offload": False, "training": True}
        try:
            model = self.llm(self.app, self.log)
            model.compile(self.system, self.llm.Execution.from_json(execution))
            model.run(self.system)
            return BATCH / model.get_stats_json(False)["sample_rate"]
        except self.llm.Error:
            return None


class SimuMax:
    name = "SimuMax"

    def __init__(self, root):
        sys.path.insert(0, root)
        from simumax.core import config, perf_llm

        self.config, self.model = config, perf_llm.PerfLLM()

        def file(path):
            return os.path.join(root, "configs", path)
        self.strategy = config.StrategyConfig.read_json_file(file("strategy/tp1_pp2_dp4_mbs1.json"))
        self.llm = config.ModelConfig.init_from_config_file(file("models/gpt3-175b.json"))
        self.system = config.SystemConfig.init_from_config_file(file("system/a100_pcie.json"))

    def seconds(self, plan):
        tensor, pipeline, micro, recompute = plan
        data = GPUS // (tensor * pipeline)
        own = dict(self.strategy, seq_len=SEQUENCE, world_size=GPUS, tp_size=tensor,
                   pp_size=pipeline, micro_batch_size=micro, micro_batch_num=BATCH // (data * micro),
                   enable_sequence_parallel=tensor > 1, enable_recompute=recompute == "full",
                   recompute_granularity="full_block" if recompute == "full" else None,
                   recompute_layer_num=LAYERS // pipeline if recompute == "full" else 0)
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                self.model.configure(self.config.StrategyConfig.init_from_dict(own), self.llm,
                                     self.system)
                self.model.run_estimate()
                cost, memory = self.model.analysis_cost().data, self.model.analysis_mem().data
            except (AssertionError, ValueError, NotImplementedError, ZeroDivisionError):
                return None
        stages = memory.values() if pipeline > 1 else [memory]
        peak = max(gibibytes(stage["peak_mem_with_reserved"]) for stage in stages)
        return milliseconds(cost["duration_time_per_iter"]) / 1e3 if peak <= 80 else None


def quantity(text, units):
    value, unit = re.match(r"\s*([-\d.e+]+)\s*(\S+)", str(text)).groups()
    return float(value) * units[unit]


def gibibytes(text):
    return quantity(text, {"B": 2**-30, "KB": 2**-20, "MB": 2**-10, "GB": 1, "TB": 2**10})


def milliseconds(text):
    return quantity(text, {"us": 1e-3, "ms": 1, "s": 1e3})


def judged(peer):
    """Seconds of a step of what fits, by plan; microseconds of a configuration."""
    all_plans, found = list(plans()), {}
    begin = time.process_time()
    for plan in all_plans:
        seconds = peer.seconds(plan)
        if seconds is not None:
            found[plan] = seconds
    return found, 1e6 * (time.process_time() - begin) / len(all_plans)


def zerolab(options):
    """Likewise; those that it shows. Times by what was timed."""
    found, times = {}, {}
    common = ["plan", "gpt3-175b", "--cluster", f"{GPUS}xa100-80", "--global-batch", str(BATCH),
              "--sequence-length", str(SEQUENCE)]
    before = os.times()
    whole = subprocess.run([options.zerolab, *common, "-o", "json"], capture_output=True, text=True,
                           check=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user
    spent -= before.children_system
    runnable = json.loads(whole.stdout)["counts"]["runnable"]
    times[f"a whole search of {runnable} plans"] = 1e6 * spent / runnable
    for recompute in RECOMPUTE:
        done = subprocess.run(
            [options.zerolab, *common, "--top", "40", "--software", options.software, "--constrain",
             "zero=1,replicate=1,offload=none,schedule=1f1b,virtual_stages=1,micro_batch<=8,"
             f"recompute={recompute}", "-o", "json"],
            capture_output=True, text=True, check=True)
        for each in json.loads(done.stdout)["plans"]:
            strategy = each["strategy"]
            mesh = strategy["x-zerolab"].get("parallel", {})
            plan = (mesh.get("tensor", 1), mesh.get("pipeline", 1),
                    strategy["train_micro_batch_size_per_gpu"], recompute)
            found[plan] = min(found.get(plan, 1e9), each["step_time_seconds"])
    bench = subprocess.run([options.bench, "--benchmark_filter=judge_pipelines",
                            "--benchmark_format=json"], capture_output=True, text=True, check=True)
    text = bench.stdout
    times.update({each["name"]: each["cpu_time"]
                  for each in json.loads(text[text.index("{"):])["benchmarks"]})
    return found, times


def top(found):
    return sorted(found, key=found.get)[:TOP]


def text_of(plan):
    tensor, pipeline, micro, recompute = plan
    return f"tp{tensor} pp{pipeline} micro-batch {micro} recompute {recompute}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--zerolab", default="build/zerolab")
    parser.add_argument("--bench", default="build/tests/bench/zerolab_bench")
    parser.add_argument("--software", default="megatron-core")
    parser.add_argument("--calculon")
    parser.add_argument("--simumax")
    options = parser.parse_args()
    results = {}
    for name, root in (("calculon", options.calculon), ("simumax", options.simumax)):
        if not root:
            print(f"{name}: not given")
            continue
        peer = {"calculon": Calculon, "simumax": SimuMax}[name](os.path.abspath(root))
        found, each = judged(peer)
        results[peer.name] = found
        print(f"{peer.name}: {each:.0f} us of processor a configuration, {len(found)} fit")
    found, times = zerolab(options)
    results["zerolab"] = found
    for name, each in times.items():
        print(f"zerolab, {name}: {each:.2f} us of processor a configuration")
    for name, found in results.items():
        print(f"\n{name}:")
        for plan in top(found):
            print(f"  {found[plan]:8.2f} s  {text_of(plan)}")
    names = list(results)
    for i, one in enumerate(names):
        for other in names[i + 1:]:
            common = set(top(results[one])) & set(top(results[other]))
            print(f"{one} and {other}: {len(common)} of the top {TOP} in common")


if __name__ == "__main__":
    main()
