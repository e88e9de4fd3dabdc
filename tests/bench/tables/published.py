"""Sections of simulator/accuracy.md: predictions beside what others published."""
import json
import re
import textwrap

from tables.text import percent, seconds, table, wrapped


def published(lab):
    found = json.loads(lab.run("zerolab", "validate", "-o", "json"))

    def errors(found):
        return [f"{100 * found['mape']:.1f} %", percent(found["bias"]), f"{100 * found['p95']:.1f} %",
                f"{100 * found['inside_bar']:.0f} %"]

    def row(group):
        return [str(group["runs"]), *errors(group), *errors(group["left_out"])]

    names = ["mean error", "bias", "p95", "inside bar"]
    counts = ["runs", *names, *(f"left out: {name}" for name in names)]
    left_out = [[each["why"], str(each["runs"])] for each in found["not_predicted"]]
    kinds = {"measured": "measured steps", "composed": "steps composed of timed operators"}
    return ("`zerolab validate`: every published step of `scenarios/catalog/published` that the program can\n"
            "express, under the profile of the software that ran it. Links to the sources are in the files,\n"
            "what was fitted in the profiles (`fitted`). Left out: each run predicted by the fit without its\n"
            "source, or its shape of model and mesh where there is one source; bars are of these fits.\n"
            "Repeated measurements of one configuration are one run, their median; the bar is to hold all.\n\n"
            + table(["of all", *counts], [[kinds[each["kind"]], *row(each)] for each in found["all"]])
            + "\n\n" + table(["software", "GPU", "kind", *counts],
                             [[f"`{each['software']}`", f"`{each['gpu']}`", each["kind"], *row(each)]
                              for each in found["by_software"]])
            + "\n\n" + table(["source", "software", "GPU", *counts],
                             [[each["source"], f"`{each['software']}`", f"`{each['gpu']}`", *row(each)]
                              for each in found["by_source"]])
            + "\n\n" + table(["not predicted because", "runs"], left_out))


def meshes(lab):
    found = json.loads(lab.run("zerolab", "validate", "--meshes", "-o", "json", "--no-db"))
    rows, why = [], []
    for each in found["meshes"]:
        if each["step"] is None:
            name = each["run"]
            why.append(f"- `{name}`: {each['why'].removeprefix(name + ': ')}.")
            continue
        rows.append([f"`{each['run']}`", each["of"], each["GPUs"], f"`{each['software']}`",
                     each["chosen"], seconds(each["step"]), each["fits"], each["best plan"],
                     seconds(each["its step"]), f"{each['times the best']:.2f}",
                     f"{100 * each['plans faster']:.0f} %", each["of plans"]])
        if each["why"]:
            why.append(f"- `{each['run']}`: {each['why']}.")
    text = wrapped(
        "`zerolab validate --meshes`: published runs on 64 GPUs and more that state their mesh, of "
        "those that ask the same (model, GPUs, batch, length, software; `of`: so many) the one "
        "measured fastest, beside the best plan of a search under the same software. Steps are "
        "predictions. Plans faster: of up to 400 plans that may fit, spread evenly over all, those "
        "whose least step is shorter than the chosen one's least.")
    text += "\n\n" + table(["run", "of", "GPUs", "software", "chosen", "step", "fits", "best plan",
                            "its step", "times the best", "plans faster", "of plans"], rows)
    if why:
        text += "\n\nThose below the best tenth, those faster than what was found, and those without a plan:\n\n"
        text += "\n".join(textwrap.fill(line, 100, subsequent_indent="  ", break_long_words=False,
                                        break_on_hyphens=False) for line in why)
    left_out = [[each["not judged because"], str(each["runs"])] for each in found["not_judged"]]
    return text + ("\n\n" + table(["not judged because", "runs"], left_out) if left_out else "")


def compression(lab):
    rows = []
    for what, more in (("without a profile", []),
                       ("`deepspeed-2020`", ["--software", "deepspeed-2020"])):
        runs = lab.results("bert-large-64xv100-ethernet", *more)["sim"]
        adam, onebit = (runs[name]["step_time_seconds"]["median"]
                        for name in ("adam-16bit", "onebit-adam-16bit"))
        whole = [sum(runs[name]["step_seconds"]) for name in ("adam-16bit", "onebit-adam-16bit")]
        rows.append([what, seconds(adam), seconds(onebit), f"{adam / onebit:.1f}x",
                     f"{whole[0] / whole[1]:.1f}x"])
    rows.append(["published (Tang et al. 2021)", "", "", "6.6x", "3.5x"])
    return ("`zerolab run bert-large-64xv100-ethernet`: BERT-Large on 64 V100 in nodes of 4 behind\n"
            "4.1 Gbit/s, 1,000 steps, 15 % of them before the freeze. Simulated.\n\n"
            + table(["speed of", "step of Adam", "compressed step", "ratio", "whole run"], rows))


def sparse(lab):
    rows = []
    for software in ("zerolab", "megatron-deepspeed-2021"):
        for length in ("4k", "16k", "64k"):
            runs = lab.results("sparse-attention", "--sequence-length", length,
                               "--software", software)["sim"]
            times = {name: run["step_time_seconds"]["median"] for name, run in runs.items()}
            dense = times["dense"]  # None: it does not fit
            rows.append([f"`{software}`", length, seconds(dense) if dense else "does not fit"] + [
                f"{dense / times[name]:.1f}x" if dense else seconds(times[name])
                for name in ("fixed", "fixed-16", "bigbird")])
    rows.append(["published (DeepSpeed 2020)", "", "", "up to 6.1x", "", ""])
    return ("`zerolab run sparse-attention`: GPT-2 of 124 M parameters on one V100, batch 1, recomputed,\n"
            "blocks of 16; speed of the whole step over dense attention's, its time where dense attention\n"
            "does not fit. `fixed` has windows of 4 blocks, `fixed-16` of 16, one global block each;\n"
            "`bigbird` a window of 3 blocks, one random and one global. DeepSpeed names neither\n"
            "the length nor the layout. Simulated.\n\n"
            + table(["software", "sequence", "dense step", "fixed", "fixed-16", "bigbird"], rows))


def parity(lab):
    found = {}
    for line in lab.run("tests/test_parity").splitlines():
        match = re.match(r"(\w+), (\d) ranks, ZeRO-(\d)(, bf16)?: loss within ([\d.e+-]+)", line)
        if match:
            key = (match[1], "bf16, 4 ranks, ZeRO-2" if match[4] else
                   "fp32, 1 and 4 ranks, ZeRO-0 and 3")
            found[key] = max(found.get(key, 0), float(match[5]))
    if not found:
        raise RuntimeError("test_parity printed no differences")
    kinds = sorted({kind for _, kind in found}, reverse=True)
    rows = [[model] + [f"{found[model, kind]:.1e}" for kind in kinds]
            for model in dict.fromkeys(model for model, _ in found)]
    return ("`test_parity`: 50 steps of AdamW with clipping and warm-up; largest relative difference of\n"
            "the loss from PyTorch's, whose fp32 is itself 3e-7 from its float64.\n\n"
            + table(["model", *kinds], rows))
