"""Markdown, and numbers as a reader wants them."""
import re
import textwrap


def table(head, rows):
    """Markdown; columns of numbers are flush right."""
    def is_number(column):
        cells = [str(row[column]) for row in rows if str(row[column])]
        return all(cell[0] in "0123456789+-±" for cell in cells)

    marks = "|" + "|".join("---:" if is_number(i) else "---" for i in range(len(head))) + "|"
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], marks, *lines[1:]])


def wrapped(text):
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def seconds(value):
    if value == 0:
        return "0"
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us"), (1e9, "ns")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def percent(value):
    return f"{100 * value:+.1f} %"


def mebibytes(value):
    return f"{value / 2**20:.2f} MiB"


def count(value):
    for factor, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.3g}"


def bench_rows(benches):
    plain = {"name", "run_name", "run_type", "repetitions", "repetition_index", "threads",
             "iterations", "real_time", "cpu_time", "time_unit", "family_index", "aggregate_name",
             "per_family_instance_index", "aggregate_unit"}
    unit = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
    rows = []
    for bench in benches:
        if bench.get("aggregate_name", "median") != "median":
            continue
        name = re.sub(r"/(manual_time|real_time|iterations:\d+|repeats:\d+)", "", bench["run_name"])
        counters = ", ".join(f"{key} {count(value)}" for key, value in bench.items()
                             if key not in plain and isinstance(value, (int, float)))
        rows.append([f"`{name}`", seconds(bench["real_time"] * unit[bench["time_unit"]]), counters])
    return table(["benchmark", "time", "what it says besides"], rows)
