// Lists of stored runs as tables. Ownership: values. Threads: pure functions.
#pragma once

#include <span>
#include <string>

#include "results/format.h"
#include "results/store.h"

namespace zl {

// For people: a line per run, of what fits a terminal.
Table stored_runs_table(std::span<const RunSummary> runs);

// For programs: every column, always.
Table stored_runs_flat_table(std::span<const RunSummary> runs);

// What a run was and what came of it, a row a fact; what is not known is left out.
Table stored_run_table(const RunSummary& run, const RunResult& result, const Environment& machine);

// "60", "53 of 60" of one that ended early, "9 to 60" of a resumed one: the steps that it took.
std::string steps_text(const RunSummary& run);

// "2026-11-21 13:46" of an ISO 8601 time.
std::string minute_of(const std::string& time);

}  // namespace zl
