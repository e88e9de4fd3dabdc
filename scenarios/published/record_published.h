// A published run recorded once, to be priced under many softwares.
// Ownership: values. Threads: pure functions.
#pragma once

#include "scenarios/published/published_run.h"
#include "scenarios/run/simulate.h"

namespace zl {

struct RecordedRun {
  Scenario scenario;
  Recording recording;
  TimeKind kind = TimeKind::measured;
};

// Of one step, seconds.
struct PricedStep {
  double seconds = 0, low = 0, high = 0;  // predicted, and its error bar
  double least = 0;                       // no device of these peak rates is faster
};

// Without limits of memory: it ran.
RecordedRun record_published(Scenario scenario, TimeKind kind = TimeKind::measured);
PricedStep price_published(const RecordedRun& run, const sim::ClusterSpec& cluster);

}  // namespace zl
