"""Sections of tests/bench/results.md: how fast this machine is."""
import statistics
import subprocess
import sys

from tables.lab import ROOT, Skipped
from tables.text import bench_rows, seconds, table

SHORT_BENCHES = (r"^gemm/(fp32|bf16)/.*1024x3072x768/threads:2|"
                 r"^attention_(forward|backward)/gpt2_b1_t1024/.*threads:2|"
                 r"^activation_|^adamw|^squared_sum|"
                 r"^compress/2|^unpack/2|^average/2|^crc32c|^file_tier|"
                 r"^bm_collective/.*67108864/ranks:2|^record_gpt3|^price_gpt3")


def core_benches(lab):
    return ("`zerolab_bench`, a selection; each verifies its result before it is timed. `of_...` is the\n"
            "share of a ceiling that was measured in the same moments.\n\n"
            + bench_rows(lab.benches(SHORT_BENCHES)))


def sparse_blocks(lab):
    found = {}
    for bench in lab.benches("^sparse_attention/"):
        if bench.get("error_occurred"):
            raise RuntimeError(f"{bench['run_name']}: {bench['error_message']}")
        _, layout, dtype, block, sequence, *_ = bench["run_name"].split("/")
        key = layout, int(block.split(":")[1]), dtype
        found.setdefault(key, {})[int(sequence.split(":")[1])] = bench
    lengths = sorted({length for row in found.values() for length in row})
    rows = [[f"`{layout}`", block, dtype]
            + ["{over_density:.2f} ({least_over_density:.2f})".format(**row[length]) for length in lengths]
            + [f"{row[lengths[-1]]['traffic_over_density']:.2f}",
               f"{100 * row[lengths[-1]]['density']:.2f} %", f"{row[lengths[-1]]['speedup']:.1f}x"]
            for (layout, block, dtype), row in found.items()]
    tens = [[f"`{bench['run_name'].split('/')[1]}`", bench["run_name"].split("/")[2],
             seconds(1e-3 * bench["real_time"]), seconds(1e-3 * bench["dense_tenth_ms"]),
             f"{bench['of_dense_tenth']:.2f}"] for bench in lab.benches("^sparse_attention_ten_times")]
    return ("`zerolab_bench --benchmark_filter=sparse_attention`: a step of causal attention, forward and\n"
            "backward, over layouts of blocks, in turn with dense attention of the same length; 4 heads of\n"
            "64, one thread. As many sparse steps as do the work of a dense one, one after the other as in\n"
            "a stack of layers, over the dense step (1: a block costs what it costs in dense attention),\n"
            "medians of such pairs, by length, and in brackets the quickest of both over density x the\n"
            "quickest dense one; density and speed-up of the longest. `traffic`: the time, in the same parts\n"
            "and measured in the same moments, of reading and writing once what each direction has to, with\n"
            "nothing computed; of the longest. No step takes less than the greater of 1 and that (the\n"
            "floor); one that moves and computes in turn takes their sum.\n\n"
            + table(["layout", "block", "type", *(str(length) for length in lengths), "traffic",
                     "density", "speed-up"], rows)
            + "\n\nTen times the sequence, 40,960 beside dense 4,096, blocks of 16:\n\n"
            + table(["layout", "type", "step", "dense step of a tenth", "ratio"], tens))


def dashboard(lab):
    return ("`zerolab_gui_bench`. Budgets: 16 ms for a frame and for an edit of Llama 3 8B, 50 ms for one\n"
            "of GPT-3 175B (`edit:0` records anew, 1 prices again, 2 does neither; `llama:0` is GPT-3).\n\n"
            + bench_rows(lab.benches(".", "tests/bench/zerolab_gui_bench")))


def peers(_):
    raise Skipped("fio and Open MPI's own collectives are not started by this command")


def offload(lab):
    return ("`zerolab_bench --benchmark_filter=hidden_transfers`: the share of the transfers to files\n"
            "that compute or the host's update hides.\n\n" + bench_rows(lab.benches("^hidden_transfers")))


def pytorch(lab):
    script = [sys.executable, str(ROOT / "tests/bench/step_against_pytorch.py")]
    if subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
        raise Skipped("this Python has no torch")
    text = subprocess.run([*script, "--program", str(lab.build / "zerolab")], text=True, check=True,
                          env=lab.environment, stdout=subprocess.PIPE).stdout
    return ("`./lab bench pytorch`: one step of GPT-2 124M, in turn with PyTorch's.\n\n```\n"
            + text.strip() + "\n```")


def convergence(lab):
    rows = []
    for seed in (1, 2, 3):
        runs = lab.results("onebit-convergence", "--backend", "cpu", "--seed", str(seed))["cpu"]
        adam, onebit = runs["adam-16bit"], runs["onebit-adam-16bit"]
        means = [statistics.mean(run["loss"][-20:]) for run in (adam, onebit)]
        sent = [run["wire_bytes_per_step"] * run["steps"] for run in (adam, onebit)]
        rows.append([seed, f"{means[0]:.4f}", f"{means[1]:.4f}", f"{100 * (means[1] / means[0] - 1):+.2f} %",
                     f"1 / {sent[0] / sent[1]:.2f}"])
    return ("`zerolab run onebit-convergence --backend cpu --seed N`: 3 M parameters, the King James\n"
            "Bible, 300 steps of which 45 warm up, 4 ranks, bf16 gradients. Loss: mean of the last 20\n"
            "steps. Traffic: bytes that a rank sends over the whole run.\n\n"
            + table(["seed", "AdamW", "1-bit Adam", "difference", "traffic"], rows))


def ten_times(lab):
    return ("`zerolab capacity ten-times --train`: the deepest GPT of width 256 that fits 64 MiB of device\n"
            "memory and 768 MiB of host memory per rank (2 ranks, bf16), trained; and the one with a\n"
            "layer more.\n\n" + lab.run("zerolab", "capacity", "ten-times", "--train", "-o", "md").strip())
