#!/usr/bin/env python3
"""Registers, stack and spills of every CUDA kernel, as ptxas counts them; a table on stdout.

Compiles the kernels again with `-Xptxas=-v`, by the commands of the build folder. Exit code 1 when a
kernel spills more than ALLOWED_SPILLS says.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

# Bytes that a thread may store to spill registers, by the kernel's name: first match counts.
ALLOWED_SPILLS = [("attend_backward<", 20), ("attend_blocks_backward<", 12), ("", 0)]

COMPILING = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def compile_commands(folder):
    with open(os.path.join(folder, "compile_commands.json")) as file:
        for entry in json.load(file):
            if entry["file"].endswith(".cu") and "nvcc" in entry["command"]:
                yield entry


def ptxas_report(entry):
    arguments = [a for a in shlex.split(entry["command"]) if not a.startswith("-Ofc=")]
    arguments[arguments.index("-o") + 1] += ".resources"
    run = subprocess.run(arguments + ["-Xptxas=-v"], cwd=entry["directory"], text=True,
                         capture_output=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return run.stderr + run.stdout


def kernels_of(report):
    kernel = None
    for line in report.splitlines():
        if match := COMPILING.search(line):
            kernel = {"name": match[1], "arch": match[2]}
        elif match := STACK.search(line):
            if kernel:  # else: of a function that is called
                kernel.update(stack=int(match[1]), stores=int(match[2]), loads=int(match[3]))
        elif kernel and (match := REGISTERS.search(line)):
            yield {**kernel, "registers": int(match[1])}
            kernel = None


def demangled(names):
    run = subprocess.run(["c++filt"], input="\n".join(names), text=True, capture_output=True)
    lines = run.stdout.splitlines() if run.returncode == 0 else names
    drop = re.compile(r"zl::cuda::|\(anonymous namespace\)::|^void |zl::")
    return [drop.sub("", line).split("(", 1)[0] if "(anonymous" not in line
            else re.sub(r">\(.*", ">", drop.sub("", line)) for line in lines]


def allowed(name):
    return next(spills for part, spills in ALLOWED_SPILLS if part in name)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", help="build folder, configured with CUDA")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--all", action="store_true", help="list kernels without spills too")
    options = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        reports = list(pool.map(ptxas_report, compile_commands(options.build)))
    kernels = [kernel for report in reports for kernel in kernels_of(report)]
    if not kernels:
        sys.exit("no CUDA kernels: is the build configured with CUDA?")
    failed = 0
    print(f"{'arch':6} {'regs':>4} {'stack':>6} {'stores':>6} {'loads':>6}  kernel")
    for kernel, name in zip(kernels, demangled([kernel["name"] for kernel in kernels])):
        over = kernel["stores"] > allowed(name)
        failed += over
        if options.all or kernel["stack"] or over:
            print(f"{kernel['arch']:6} {kernel['registers']:4} {kernel['stack']:6} "
                  f"{kernel['stores']:6} {kernel['loads']:6}  {name}{'  SPILLS' if over else ''}")
    print(f"{len(kernels)} kernels, {failed} spill more than allowed", file=sys.stderr)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
