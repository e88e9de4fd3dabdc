"""The section of simulator/accuracy.md on runs of GPUs: results/measured beside predictions of today."""
import csv
import json

from tables.lab import ROOT, Skipped
from tables.text import mebibytes, percent, seconds, table, wrapped


def gpu(lab):
    """What the acceptance runs of results/measured have, beside what is predicted today."""
    folders = sorted(path.parent for path in (ROOT / "results/measured").glob("*/d-throughput.json"))
    if not folders:
        raise Skipped("results/measured holds no acceptance run")
    return "\n\n".join(gpu_text(lab, folder) for folder in folders)


def gpu_text(lab, folder):
    def part(name):
        return json.loads((folder / name).read_text())

    trained, memory, profile = part("d-throughput.json"), part("c-memory.json"), part("f-calibration.json")
    calibrated = profile["figures"]["models"]
    rows = []
    for name, each in trained["figures"].items():
        ours, step = each["zerolab"], each["zerolab"]["median_step_seconds"]
        twin = list(lab.results(
            "--model", each["model"], "--backend", "sim", "--cluster", folder.name, "--software", "zerolab",
            "--strategy", "zero-0", "--ranks", "1", "--precision", "bf16", "--data", "synthetic", "--steps",
            "2", "--no-deterministic", "--no-db", "--sequence-length", str(each["sequence"]),
            "--micro-batch", str(ours["batch"]))["sim"].values())[0]
        peak = twin["peak_bytes"]["device"]["total"]
        rows.append([f"`{name}`", f"{ours['batch']} x {each['sequence']}", seconds(step),
                     f"{ours['tokens_per_second']:.0f}", f"{100 * ours['mfu']:.1f} %",
                     f"{each['ratio']:.2f}" if "ratio" in each else "",
                     percent(twin["step_time_seconds"]["median"] / step - 1),
                     percent(calibrated[name]["error"]), mebibytes(each["peak_bytes"]),
                     "yes" if peak == each["peak_bytes"] else "NO"])
    worst = max(abs(run[key]) for run in memory["figures"]["runs"]
                for key in ("pool_against_driver", "simulator_against_driver"))
    device, torch = trained["device"]["name"], trained["settings"]["pytorch"]
    text = wrapped(
        f"`tests/gpu/acceptance` of {trained['date'][:10]}, commit {trained['commit']}, on one {device}, "
        f"driver {trained['driver']}, attention of {trained['libraries']['attention'].split(' (')[0]}: one "
        f"rank, bf16, AdamW, clipping. MFU: of the data sheet's dense bf16 peak. Times torch: PyTorch "
        f"{torch['torch']} compiled by {torch['compile']}, in turn with zerolab. Errors are predicted over "
        f"measured: from the data sheet (`--cluster {folder.name} --software zerolab`), and after "
        f"`zerolab calibrate --backend cuda`, which trains other models. Bytes equal: of the peak, predicted "
        f"and measured. Of the driver's own account (`cudaMemGetInfo`) the pool and the simulator are off "
        f"by at most {100 * worst:.2f} % in {len(memory['figures']['runs'])} runs.")
    text += "\n\n" + table(["model", "batch", "step", "tokens/s", "MFU", "times torch", "data sheet",
                            "calibrated", "peak", "bytes equal"], rows)
    return text + gpu_software_text(lab, folder) + gpu_sparse_text(lab, folder)


def gpu_software_text(lab, folder):
    file = folder / "software.csv"
    if not file.exists():
        return ""
    with open(file, newline="") as rows:
        runs = {row["id"]: row for row in csv.DictReader(rows)}
    judged = json.loads(lab.run("zerolab", "validate", "--file", str(file), "--no-db", "-o", "json"))
    memory = {each["id"]: each for each in judged["memory"]["runs"]}
    lines = []
    for each in judged["runs"]:
        run, name = runs[each["id"]], each["id"].removesuffix("-time")
        peaks = [memory[f"{name}-{kind}"] for kind in ("allocated", "reserved")]
        lines.append([f"`{run['software']}`", run["model"], f"{run['micro_batch']} x {run['seq']}",
                      run["zero_stage"] or "0", run["recompute"], seconds(each["measured_seconds"]),
                      percent(each["error"])] +
                     [text for peak in peaks
                      for text in (f"{peak['measured_bytes'] / 2**30:.2f} GiB", percent(peak["error"]))])
    return "\n\n" + wrapped(
        f"Other software there, one GPU: `tests/gpu/pytorch_profiles.py` ({run['notes']}, DeepSpeed 0.19.8 with "
        "models of transformers; half-second windows, between which the GPU stays cool), beside `zerolab validate "
        f"--file {file.relative_to(ROOT)}`. Peaks: of tensors, and of what the allocator reserved. `torch-ddp` "
        "has its buckets on one GPU, too, which the prediction has of several only; `torch-fsdp2` is predicted with "
        "FlashAttention-2, as torchtitan chooses it, and ran cuDNN's.") + "\n\n" + table(
            ["software", "model", "batch", "ZeRO", "recomputed", "step", "error", "peak", "error", "reserved", "error"],
            lines)


def gpu_sparse_text(lab, folder):
    lengths = sorted(int(path.stem) for path in (folder / "sparse").glob("[0-9]*.json"))
    rows = []
    for length in lengths:
        real = json.loads((folder / f"sparse/{length}.json").read_text())["results"]
        twins = lab.results(str(folder / "sparse/scenario.json"), "--backend", "sim", "--software", "zerolab",
                            "--no-deterministic", "--no-db", "--sequence-length", str(length))["sim"]
        for run in real:
            step, twin = run["step_time_seconds"]["median"], twins[run["strategy"]]
            rows.append([f"`{run['strategy']}`", length, seconds(step),
                         f"{real[0]['step_time_seconds']['median'] / step:.2f}",
                         percent(twin["step_time_seconds"]["median"] / step - 1),
                         mebibytes(run["peak_bytes"]["device"]["total"]),
                         "yes" if twin["peak_bytes"] == run["peak_bytes"] else "NO"])
    if not rows:
        return ""
    return "\n\n" + wrapped(
        "Block-sparse attention in GPT-2 of 124 M, batch 1, beside dense attention (cuDNN's): "
        f"`zerolab run {(folder / 'sparse/scenario.json').relative_to(ROOT)} --backend cuda "
        "--no-deterministic`, predicted from the data sheet.") + "\n\n" + table(
            ["attention", "length", "step", "times dense", "error", "peak", "bytes equal"], rows)
