"""The built programs, and what keeps a section from being measured."""
import json
import os
import pathlib
import re
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Skipped(Exception):
    """A section that cannot be measured here, and why."""


class Lab:
    """The built programs, and a home of their own for what they store."""

    def __init__(self, build, home):
        self.build, self.home = build, home
        self.environment = dict(os.environ, NO_COLOR="1", QT_QPA_PLATFORM="offscreen")
        self.environment.pop("OMP_WAIT_POLICY", None)  # as users have it
        for name in ("DATA", "CONFIG", "CACHE"):
            self.environment[f"XDG_{name}_HOME"] = str(home / name.lower())

    def run_in_turns(self, turn, program, *arguments):
        """As run() of a program that says "[1/9] .." as each of its parts begins: turn() is called then, and the
        program stands still meanwhile."""
        command = [str(self.build / program), *arguments]
        said = ""
        with subprocess.Popen(command, env=self.environment, text=True, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as process:
            try:
                for line in process.stderr:
                    said += line
                    if re.search(r"\[\d+/\d+\]", line):
                        process.send_signal(signal.SIGSTOP)
                        turn()
                        process.send_signal(signal.SIGCONT)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{said[-2000:]}")

    def run(self, program, *arguments, **environment):
        path = self.build / program
        if not path.exists():
            raise Skipped(f"{path} is not built")
        done = subprocess.run([str(path), *arguments], env=self.environment | environment,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            raise RuntimeError(f"{program} {' '.join(arguments)} ended with {done.returncode}:\n"
                               + done.stdout[-2000:] + done.stderr[-2000:])
        return done.stdout

    def results(self, *arguments):
        """{backend: {strategy: result}} of `zerolab run`."""
        parsed = json.loads(self.run("zerolab", "run", *arguments, "-o", "json"))
        runs = parsed if isinstance(parsed, list) else [parsed]
        return {run["backend"]: {r["strategy"]: r for r in run["results"]} for run in runs}

    def benches(self, pattern, program="tests/bench/zerolab_bench"):
        text = self.run(program, "--benchmark_format=json", f"--benchmark_filter={pattern}",
                        OMP_WAIT_POLICY="passive")
        return json.loads(text[text.index("{"):])["benchmarks"]
