#!/usr/bin/env python3
"""Mutation tests: applies one mutant at a time to a copy of the last commit, builds the test programs
that may notice, runs them, and says who did.

    tests/mutation/run.py --check                the texts are there, once each
    tests/mutation/run.py [--only 1,5-8] [--jobs N] [--folder DIR]

The copy (a git worktree with a build folder) stays in DIR for the next run: the build is incremental.
Exit code 1: a mutant survived or did not build. For developers; neither build nor tests need it.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

from mutants import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIONS = ["-DCMAKE_BUILD_TYPE=Release", "-DZEROLAB_CUDA=OFF", "-DZEROLAB_BENCH=OFF",
           "-DZEROLAB_GUI=OFF", "-DZEROLAB_MPI=OFF"]
SECONDS = 900  # of one program; a mutant that hangs is noticed by the clock


def numbers(text):
    chosen = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        chosen += range(int(first), int(last or first) + 1)
    return chosen


def check(folder):
    missing = []
    for number, (file, text, replacement, _) in enumerate(MUTANTS, 1):
        path = folder / file
        count = path.read_text().count(text) if path.exists() else -1
        if count != 1 or text == replacement:
            missing.append(f"{number}: {file}: {count} times: {text}")
    return missing


def shell(folder, *command, **options):
    return subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)


def prepare(folder):
    if not folder.exists():
        done = shell(ROOT, "git", "worktree", "add", "--detach", str(folder), "HEAD")
    else:
        head = shell(ROOT, "git", "rev-parse", "HEAD").stdout.strip()
        done = shell(folder, "git", "checkout", "--force", "--detach", head)
    if done.returncode == 0:
        done = shell(folder, "cmake", "-S", ".", "-B", "build", "-G", "Ninja", *OPTIONS)
    if done.returncode != 0:
        sys.exit(done.stdout)


def build(folder, programs, jobs):
    """The lines that say what is wrong; empty: it is built."""
    done = shell(folder, "ninja", "-C", "build", f"-j{jobs}", *programs)
    if done.returncode == 0:
        return ""
    wrong = [line for line in done.stdout.splitlines() if ": error:" in line]
    return "\n".join(wrong[:3]) or done.stdout[-500:]


def find_program(folder, name):
    places = [folder / "build" / "tests" / name, *folder.glob(f"build/tests/*/{name}")]
    return next(place for place in places if place.is_file())


def who_notices(folder, tests):
    for test in tests:
        program, _, selection = test.partition(":")
        command = [str(find_program(folder, program)), "--gtest_brief=1", "--gtest_fail_fast"]
        if selection:
            command.append(f"--gtest_filter={selection}")
        try:
            done = shell(folder, *command, timeout=SECONDS,
                         env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        except subprocess.TimeoutExpired:
            return f"{program} (hangs)"
        if done.returncode != 0:
            failed = re.search(r"\[  FAILED  \] ([^ ,\n]+)", done.stdout)
            return f"{program} {failed[1] if failed else f'(ends with {done.returncode})'}"
    return None


def try_mutant(folder, mutant, jobs):
    file, text, replacement, tests = mutant
    path = folder / file
    original = path.read_text()
    path.write_text(original.replace(text, replacement))
    try:
        programs = sorted({test.partition(":")[0] for test in tests})
        wrong = build(folder, programs, jobs)
        if wrong:
            return False, "does not build: " + wrong
        noticed = who_notices(folder, tests)
        return noticed is not None, f"noticed by {noticed}" if noticed else "SURVIVED"
    finally:
        path.write_text(original)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", type=numbers, default=list(range(1, len(MUTANTS) + 1)))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutation")
    arguments = parser.parse_args()
    missing = check(ROOT)
    if missing:
        sys.exit("\n".join(missing))
    if arguments.check:
        return print(f"{len(MUTANTS)} mutants, each text once")
    prepare(arguments.folder)
    bad = 0
    for number in arguments.only:
        mutant = MUTANTS[number - 1]
        start = time.monotonic()
        good, what = try_mutant(arguments.folder, mutant, arguments.jobs)
        bad += not good
        print(f"{number:2} {mutant[0]}: `{mutant[1][:60]}`: {what} "
              f"({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{len(arguments.only)} mutants, {bad} of them not noticed or not built")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
