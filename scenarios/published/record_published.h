// A published run recorded once, to be priced under many softwares.
// Ownership: values. Threads: pure functions.
#pragma once

#include "scenarios/run/simulate.h"

namespace zl {

struct RecordedRun {
  Scenario scenario;
  Recording recording;
};

// Without limits of memory: it ran.
RecordedRun record_published(Scenario scenario);
RunResult price_published(const RecordedRun& run, const sim::ClusterSpec& cluster);

}  // namespace zl
