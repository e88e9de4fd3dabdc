// The parts of a report that both pages have.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "results/cells.h"
#include "results/report_data.h"

namespace zl {

// A page of other sections than a scenario's, such as a plan's.
struct ReportPage {
  std::string title, about;  // about: when it was written, of what
  std::vector<ReportSection> sections;
};

// Summary, training, fits, memory, step time, throughput, communication, timeline, simulated and
// measured; those that have something to say.
std::vector<ReportSection> report_sections(const ReportScenario& scenario);

Table environment_table(const std::vector<ReportEnvironment>& environments);

// In the order of report_sections:
ReportSection summary_section(const ReportScenario& scenario);
ReportSection fits_section(const ReportScenario& scenario);
ReportSection memory_section(const ReportScenario& scenario);
ReportSection step_time_section(const ReportScenario& scenario);
ReportSection throughput_section(const ReportScenario& scenario);
ReportSection communication_section(const ReportScenario& scenario);
ReportSection training_section(const ReportScenario& scenario);  // no parts: nothing was trained
ReportSection timeline_section(const ReportScenario& scenario);
ReportSection accuracy_section(const ReportScenario& scenario);

// What several of them need.
bool is_ok(const RunResult& run);
// Columns in which every cell is 0, "" or no value say nothing.
Table without_empty_columns(Table table);

}  // namespace zl
