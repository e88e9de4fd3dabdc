// How true predictions of published runs are, as a report and the dashboard have it from the
// database.
// Ownership: values. Threads: pure functions.
#pragma once

#include <span>
#include <vector>

#include "results/report_data.h"
#include "results/store.h"
#include "scenarios/published/validate.h"

namespace zl {

// What was predicted, as the database keeps it.
std::vector<PublishedPrediction> as_stored(std::span<const Judged> judged, bool is_memory);

// The other way: times or bytes of what is stored, and the runs that they refer to.
struct StoredValidation {
  StoredValidation() = default;
  explicit StoredValidation(std::span<const PublishedPrediction> stored);
  StoredValidation(const StoredValidation&) = delete;  // they refer to `runs`
  StoredValidation& operator=(const StoredValidation&) = delete;

  std::vector<PublishedRun> runs;
  std::vector<Judged> times, bytes;
};

// By software and GPU, and every run with the link to its source. No parts: nothing is stored.
ReportSection published_section(std::span<const PublishedPrediction> stored);

}  // namespace zl
