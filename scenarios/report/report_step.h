// One step of a strategy as the timeline of a report shows it.
// Ownership: values. Threads: pure functions.
#pragma once

#include "results/report_data.h"
#include "scenarios/run/replay.h"

namespace zl {

// The last step, which stands for all later ones: of a pipeline a lane per stage, its spans the
// passes of its micro-batches; then the streams that did something. And why it takes so long.
ReportStep last_step(const Scenario& scenario, const Replay& replay);

}  // namespace zl
