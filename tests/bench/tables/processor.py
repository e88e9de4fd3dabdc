"""Sections of simulator/accuracy.md: real runs on this processor beside their predictions."""
import json

from tables.beside_predictions import BesidePredictions, Row
from tables.text import mebibytes, percent, seconds, table, wrapped


def demo(lab):
    lab.run("zerolab", "calibrate", "--ranks", "4")
    runs = lab.results("demo", "--backend", "cpu,sim")
    rows = []
    for strategy, real in runs["cpu"].items():
        twin = runs["sim"][strategy]
        measured = real["step_time_seconds"]["median"]
        predicted = twin["step_time_seconds"]["median"]
        bar = twin["step_time_high"] / predicted - 1
        equal = (real["peak_bytes"] == twin["peak_bytes"]
                 and real["reserved_bytes"] == twin["reserved_bytes"]
                 and real["wire_bytes_per_step"] == twin["wire_bytes_per_step"])
        rows.append([f"`{strategy}`", f"{real['loss'][-1]:.4f}", seconds(measured),
                     seconds(predicted), percent(predicted / measured - 1),
                     f"±{100 * bar:.0f} %", mebibytes(real["peak_bytes"]["device"]["total"]),
                     "yes" if equal else "NO"])
    return ("`zerolab calibrate --ranks 4`, then `zerolab run demo --backend cpu,sim`: GPT-2 of 3 M\n"
            "parameters on the King James Bible, 4 ranks, 20 steps. The calibration trains other models.\n\n"
            + table(["strategy", "loss", "step", "predicted", "error", "bar", "peak", "bytes equal"],
                    rows))


def processor(lab):
    # Small models take more steps, for a second or so: their speed changes with the cores that their threads are on.
    models = [(each["model"], str(max(5, min(600, int(4e8 / each["parameters"])))),
               ("--task", "mlm", "--data", "synthetic") if each["family"] == "bert" else ())
              for each in json.loads(lab.run("zerolab", "show", "models", "-o", "json"))
              if each["parameters"] < 6.5e8]
    strategies = ("zero-0", "zero-3")
    rows = [Row(model, steps, ranks, precision, strategies, options) for model, steps, options in models
            for ranks, precision in ((1, "fp32"), (1, "bf16"), (2, "fp32"), (4, "fp32"), (4, "bf16"))]
    beside = BesidePredictions(lab, rows, "--ranks", "1,2,4", "--precision", "fp32,bf16")
    cells = [[f"`{row.model}`", row.ranks, row.precision, beside.cell(row), beside.cell(row, 1)]
             for row in beside.rows]
    return (wrapped(
        "`zerolab calibrate --moments quiet --ranks 1,2,4 --precision fp32,bf16` and `zerolab run --model M --cluster "
        "local --strategy zero-0,zero-3 --sequence-length 64 --micro-batch 1` (encoders with `--task mlm --data "
        "synthetic`) with `--backend sim` and with `cpu`: "
        f"predicted over measured steps, less one. {beside.moments_text()} Empty: it does not fit.")
        + f"\n\n{beside.errors_text()}\n\n" + table(["model", "ranks", "precision", *strategies], cells))


def strategies(lab):
    """Every strategy of the catalogue, and what one can ask of each, on as many ranks as it takes."""
    named = [each["strategy"] for each in json.loads(lab.run("zerolab", "show", "strategies", "-o", "json"))]
    accumulated = ("--gradient-accumulation", "4")
    asked = [(name, accumulated if name.startswith("pp") else ()) for name in named]
    asked += [("zero-1", accumulated), ("zero-1", ("--pipeline", "2", *accumulated)),
              ("zero-1", ("--recompute", "selective:attention"))]
    asked += [(name, ("--tensor", "2")) for name in ("zero-0", "zero-1", "zero-3")]
    asked += [("zero-1", ("--tensor", "2", "--sequence-parallel"))]
    all_ranks = (1, 2, 3, 4)
    files = ("--nvme-path", str(lab.home))
    rows = {(name, options, ranks): Row("gpt2-124m", "5", ranks, "fp32", (name,), (*options, *files))
            for name, options in asked for ranks in all_ranks}
    beside = BesidePredictions(lab, rows.values(), "--ranks", "1,2,4")

    def cells(name, options):
        own = [rows[name, options, ranks] for ranks in all_ranks]
        return [f"`{' '.join((name, *options))}`", *(beside.cell(row) for row in own)]
    table_rows = [cells(name, options) for name, options in asked]
    return (wrapped(
        "`zerolab calibrate --moments quiet --ranks 1,2,4` and `zerolab run --model gpt2-124m --cluster local "
        "--strategy S --sequence-length 64 --micro-batch 1`, with what stands behind the strategy: predicted over "
        f"measured steps, less one, on 1 to 4 ranks. {beside.moments_text()} Empty: it is not for so many ranks.")
        + f"\n\n{beside.errors_text()}\n\n"
        + table(["strategy", "1 rank", *(f"{ranks} ranks" for ranks in all_ranks[1:])],
                [row for row in table_rows if any(row[1:])]))


def slow_link(lab):
    lab.run("zerolab", "calibrate", "--ranks", "4", "--precision", "bf16")
    runs = lab.results("onebit-slow-link", "--backend", "cpu,sim")
    rows = []
    for backend, what in (("cpu", "measured"), ("sim", "predicted")):
        adam, onebit = (sum(runs[backend][name]["step_seconds"])
                        for name in ("adam-16bit", "onebit-adam-16bit"))
        rows.append([what, seconds(adam), seconds(onebit), f"{adam / onebit:.1f}x"])
    return ("`zerolab run onebit-slow-link --backend cpu,sim`: 4 ranks held to 100 Mbit/s, 20 steps of\n"
            "which 3 warm up, after `zerolab calibrate --ranks 4 --precision bf16`.\n\n"
            + table(["", "AdamW", "1-bit Adam", "ratio"], rows))
