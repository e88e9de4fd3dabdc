// What a report says of the stages of a pipeline. Ownership: values. Threads: pure functions.
#pragma once

#include "results/report_data.h"
#include "results/report_sections.h"

namespace zl {

// What each stage of the run holds, and how long it is idle.
ReportPart stages_part(const ReportRun& run);

}  // namespace zl
