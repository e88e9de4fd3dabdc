"""Steps measured on this processor beside what is predicted after a calibration."""
import json
import statistics
import sys
import time
import typing

from tables.text import percent, seconds


class Row(typing.NamedTuple):
    """One `zerolab run` on this processor."""
    model: str
    steps: str
    ranks: int
    precision: str
    strategies: tuple
    options: tuple = ()

    def __str__(self):
        return f"{self.model}, {self.ranks} ranks, {self.precision}"


def agree(moments):
    return max(moments) <= 1.05 * min(moments)


def quicker_half(values):
    return sorted(values)[:(len(values) + 1) // 2]


class BesidePredictions:
    """Steps of rows as a machine takes them that nothing else uses, each at two moments or three (see is_due), beside
    what is predicted after a calibration between the first two. Other work disturbs steps for seconds or minutes and
    never makes one quicker: of the moments the quietest counts, and of its steps the quicker half, on either side. ^C
    ends a moment early, and what was measured counts; within the calibration it ends all. Where the lab's home is kept,
    it has the calibration and the moments of the times before, and each row is run at one more. Keys are a row and a
    place among its strategies."""

    def __init__(self, lab, name, rows, *calibration):
        self.lab, self.rows = lab, list(rows)
        self.measured, self.predicted = {}, {}  # by key: seconds of the steps of each moment; a result
        self.names = {}  # by key
        self.kept = lab.home / f"{name}.json"
        is_again = self.kept.exists()
        self.begun, self.calibrated = time.time(), None  # when
        if is_again:
            self.load()
        else:
            self.set_memory()
            self.measure()
        ran = {row for row, _ in self.measured}
        self.rows = [row for row in self.rows if row in ran]
        if not self.calibrated:
            lab.run("zerolab", "calibrate", "--moments", "quiet", *calibration)
            self.calibrated = time.time()
            self.save()
        for row in self.rows:
            self.predicted.update(self.results_of(row, "sim", range(len(row.strategies))))
        for row, place in self.measured.keys() - self.predicted.keys():
            raise RuntimeError(f"{row}, {row.strategies[place]} ran, and is predicted not to fit")
        if is_again:
            self.ended_early = not self.measure(self.is_measured)
        else:
            self.ended_early = not self.measure() or not self.measure()
        self.errors = {key: 1 / min(self.ratios(key)) - 1 for key in self.measured}

    def set_memory(self):
        """One for all: what is left differs by some MiB from run to run, and what ran would be predicted not to fit."""
        one = self.lab.results("--model", "gpt2-tiny", "--cluster", "local", "--strategy", "zero-0", "--backend", "cpu",
                               "--ranks", "1", "--steps", "2", "--no-db")["cpu"]["zero-0"]
        self.lab.environment["ZEROLAB_MEMORY"] = f"{one['device_capacity_bytes'] >> 20}MiB"

    def save(self):
        moments = {f"{row!r} {place}": steps for (row, place), steps in self.measured.items()}
        self.kept.write_text(json.dumps({"begun": self.begun, "calibrated": self.calibrated, "moments": moments,
                                         "memory": self.lab.environment["ZEROLAB_MEMORY"]}))

    def load(self):
        kept = json.loads(self.kept.read_text())
        self.begun, self.calibrated = kept["begun"], kept["calibrated"]
        self.lab.environment["ZEROLAB_MEMORY"] = kept["memory"]
        keys = [(row, place) for row in self.rows for place in range(len(row.strategies))]
        self.measured = {key: kept["moments"][f"{key[0]!r} {key[1]}"] for key in keys
                         if f"{key[0]!r} {key[1]}" in kept["moments"]}

    def results_of(self, row, backend, places):
        runs = self.lab.results("--model", row.model, "--cluster", "local",
                                "--strategy", ",".join(row.strategies[place] for place in places),
                                "--backend", backend, "--ranks", str(row.ranks), "--precision", row.precision,
                                "--sequence-length", "64", "--micro-batch", "1", "--steps", row.steps, "--no-db",
                                *row.options)[backend]
        self.names.update({(row, place): name for place, name in zip(places, runs)})
        return {(row, place): run for place, run in zip(places, runs.values())
                if run["step_seconds"]}  # empty: it does not fit

    def ratios(self, key, of=quicker_half):
        """At each moment steps over their predictions, since steps of 0/1 Adam are of several kinds: the median."""
        predicted = self.predicted[key]["step_seconds"]
        return [statistics.median(of([step / expected for step, expected in zip(steps[1:], predicted[1:])]))
                for steps in self.measured[key]]

    def is_due(self, key):
        """As `calibrate` has it: a third time where two moments disagree; also where they agree and both were restless,
        which says nothing of a quiet one."""
        if not self.predicted:
            return True
        if key not in self.measured:
            return False
        quick, typical = self.ratios(key), self.ratios(key, of=list)
        restless = not any(agree(moment) for moment in zip(quick, typical))
        return len(quick) == 1 or len(quick) == 2 and (restless or not agree(quick))

    def is_measured(self, key):
        return key in self.measured

    def measure(self, is_due=None):
        """One moment of what is due; whether it came to its end."""
        is_due = is_due or self.is_due
        try:
            for row in list(self.rows):
                due = [place for place in range(len(row.strategies)) if is_due((row, place))]
                if due:
                    self.measure_row(row, due)
                    self.save()
        except KeyboardInterrupt:
            return False
        return True

    def measure_row(self, row, places):
        try:
            found = self.results_of(row, "cpu", places)
        except RuntimeError as reason:  # more memory than there is, or other ranks than it needs
            print(f"write_tables: {row}, {reason}", file=sys.stderr)
            if not self.predicted:
                self.rows.remove(row)
            return
        for key, run in found.items():
            self.measured.setdefault(key, []).append(run["step_seconds"])
            said = (percent(1 / self.ratios(key)[-1] - 1) if self.predicted
                    else seconds(run["step_time_seconds"]["median"]))
            print(f"write_tables: {row}, {self.names[key]}: {said}", file=sys.stderr)

    def moments_text(self):
        ratios = {key: self.ratios(key) for key in self.measured}
        typical = [statistics.median(self.ratios(key, of=list)) / min(ratios[key]) - 1 for key in ratios]
        inside = [self.is_in_bar(key, ratio) for key, each in ratios.items() for ratio in each]
        return (f"{self.moments_counted(len(inside))} As on a quiet machine: the quickest moment counts, and the "
                "median of the quicker half of its steps, as `--moments quiet` has it of those of the calibration. The "
                f"median step of the median moment took {100 * statistics.median(typical):.0f} % longer in the median, "
                f"{100 * max(typical):.0f} % at most. Of all runs, {100 * statistics.mean(inside):.0f} % lie inside "
                "their bars.")

    def moments_counted(self, runs):
        counts = [len(moments) for moments in self.measured.values()]
        if max(counts) > 3:
            return (f"Each was run at {min(counts)} to {max(counts)} moments within "
                    f"{(time.time() - self.begun) / 3600:.0f} hours ({runs} runs), the calibration "
                    f"{(self.calibrated - self.begun) / 3600:.1f} hours after the first.")
        early = ", ended early," if self.ended_early else ""
        return (f"Each was run at two moments, before and after the calibration, and at a third{early} where they "
                f"differed by more than 5 %, or each did so within itself ({runs} runs).")

    def is_in_bar(self, key, ratio):
        predicted = self.predicted[key]
        step = ratio * predicted["step_time_seconds"]["median"]
        return predicted["step_time_low"] <= step <= predicted["step_time_high"]

    def errors_text(self):
        sizes = [abs(error) for error in self.errors.values()]
        bias = percent(statistics.median(self.errors.values()))
        return (f"{len(sizes)} steps: median {100 * statistics.median(sizes):.1f} %, within 15 %: "
                f"{sum(size <= 0.15 for size in sizes)}, median bias {bias}.")

    def cell(self, row, place=0):
        return percent(self.errors[row, place]) if (row, place) in self.errors else ""
