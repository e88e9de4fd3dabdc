"""Steps measured on this processor beside what is predicted after a calibration."""
import statistics
import sys
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


MOST_MOMENTS = 6


def quicker_half(values):
    return sorted(values)[:(len(values) + 1) // 2]


def quiet_step(steps):
    return statistics.median(quicker_half(steps[1:]))


class BesidePredictions:
    """Steps of rows as a machine takes them that nothing else uses, beside what a calibration predicts of them. What
    others do to a shared machine lasts for minutes, so the two take turns: after each run of the calibration one of a
    row, so that both see the machine alike, and rows are run as often as `calibrate --moments quiet` runs its own (see
    is_due). Other work never makes a step quicker: of the moments the quietest counts, and of its steps the quicker
    half, on either side. ^C ends the moments early, and what was measured counts; within the calibration it ends all.
    Keys are a row and a place among its strategies."""

    def __init__(self, lab, rows, *calibration):
        self.lab, self.rows = lab, list(rows)
        self.measured, self.predicted = {}, {}  # by key: seconds of the steps of each moment; a result
        self.names = {}  # by key
        # One memory for all: what is left differs by some MiB from run to run, and what ran would be predicted not
        # to fit.
        one = lab.results("--model", "gpt2-tiny", "--cluster", "local", "--strategy", "zero-0", "--backend", "cpu",
                          "--ranks", "1", "--steps", "2", "--no-db")["cpu"]["zero-0"]
        lab.environment["ZEROLAB_MEMORY"] = f"{one['device_capacity_bytes'] >> 20}MiB"
        turns = self.turns()
        lab.run_in_turns(lambda: next(turns, None), "zerolab", "calibrate", "--moments", "quiet", *calibration)
        self.ended_early = not self.measure(turns)
        for row in self.rows:
            self.predicted.update(self.results_of(row, "sim", range(len(row.strategies))))
        for row, place in self.measured.keys() - self.predicted.keys():
            raise RuntimeError(f"{row}, {row.strategies[place]} ran, and is predicted not to fit")
        self.errors = {key: 1 / min(self.ratios(key)) - 1 for key in self.measured}

    def results_of(self, row, backend, places):
        runs = self.lab.results("--model", row.model, "--cluster", "local",
                                "--strategy", ",".join(row.strategies[place] for place in places),
                                "--backend", backend, "--ranks", str(row.ranks), "--precision", row.precision,
                                "--sequence-length", "64", "--micro-batch", "1", "--steps", row.steps, "--no-db",
                                *row.options)[backend]
        self.names.update({(row, place): name for place, name in zip(places, runs)})
        return {(row, place): run for place, run in zip(places, runs.values())
                if run["step_seconds"]}  # empty: it does not fit

    def ratios(self, key):
        """At each moment steps over their predictions, since steps of 0/1 Adam are of several kinds: of the quicker
        half the median."""
        predicted = self.predicted[key]["step_seconds"]
        return [quiet_step([step / expected for step, expected in zip(steps, predicted)])
                for steps in self.measured[key]]

    def is_due(self, key):
        """Until the two quickest moments agree and were found in five seconds of steps, or there are six. What did not
        fit beside another strategy of its row is not tried again."""
        if self.has_run(key[0]) and key not in self.measured:
            return False
        moments = self.measured.get(key, [])
        if len(moments) < 2:
            return True
        quickest, next_quickest = sorted(map(quiet_step, moments))[:2]
        is_settled = next_quickest <= 1.05 * quickest and sum(sum(steps[1:]) for steps in moments) >= 5
        return len(moments) < MOST_MOMENTS and not is_settled

    def has_run(self, row):
        return any(measured == row for measured, _ in self.measured)

    def turns(self):
        """Runs a row whenever the next is asked for."""
        for _ in range(MOST_MOMENTS):
            for row in list(self.rows):
                due = [place for place in range(len(row.strategies)) if self.is_due((row, place))]
                if due:
                    self.measure_row(row, due)
                    yield

    def measure(self, turns):
        """What the turns have left; whether they came to their end."""
        try:
            for _ in turns:
                pass
        except KeyboardInterrupt:
            return False
        return True

    def measure_row(self, row, places):
        try:
            found = self.results_of(row, "cpu", places)
        except RuntimeError as reason:  # more memory than there is, or other ranks than it needs
            print(f"write_tables: {row}, {reason}", file=sys.stderr)
            if not self.has_run(row):
                self.rows.remove(row)
            return
        for key, run in found.items():
            self.measured.setdefault(key, []).append(run["step_seconds"])
            print(f"write_tables: {row}, {self.names[key]}: {seconds(run['step_time_seconds']['median'])}",
                  file=sys.stderr)

    def moments_text(self):
        ratios = {key: self.ratios(key) for key in self.measured}
        inside = [self.is_in_bar(key, ratio) for key, moments in ratios.items() for ratio in moments]
        slower = [statistics.median(moments) / min(moments) - 1 for moments in ratios.values()]
        early = " (ended early)" if self.ended_early else ""
        return ("The calibration's runs and these took turns, so that both saw the machine alike. As it does, each was "
                f"run at two to six moments{early}, until the two quickest agreed within 5 % and had five seconds of "
                f"steps ({len(inside)} runs). As on a quiet machine: the quickest moment counts, and the median of the "
                "quicker half of its steps. The median moment of one took "
                f"{100 * statistics.median(slower):.0f} % longer in the median, {100 * max(slower):.0f} % at most. "
                f"Of all runs, {100 * statistics.mean(inside):.0f} % lie inside their bars.")

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
