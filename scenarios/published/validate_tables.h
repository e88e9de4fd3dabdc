// Published runs beside their predictions as tables: of `zerolab validate` and of the dashboard.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "results/format.h"
#include "scenarios/published/validate.h"

namespace zl {

// How true the predictions are, a row for each of `all`.
Table accuracy_table(std::span<const Accuracy> all, bool with_source);
// Of all that was measured, and of all steps composed of timed operators: a line each.
std::string headline(std::span<const Judged> judged);
// The worst of each; `unit`: seconds or bytes.
Table worst_table(std::span<const Accuracy> all, Unit unit);
// Why runs were not predicted, the reason of most runs first, with how many have it.
std::vector<std::pair<std::string, std::int64_t>> reasons(std::span<const Judged> judged);
Table not_predicted_table(std::span<const Judged> judged);
// Every run that was predicted, with the link to its source.
Table judged_table(std::span<const Judged> judged, Unit unit);

}  // namespace zl
