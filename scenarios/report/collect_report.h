// Gathers a report from the database, with what only the simulator can add.
// Ownership: values; the store is only read. Threads: the store's thread.
#pragma once

#include <string>
#include <vector>

#include "results/report_data.h"
#include "results/store.h"

namespace zl {

struct ReportFilter {
  std::string scenario;                 // name; empty: all
  std::vector<std::string> strategies;  // names; empty: all
  std::vector<std::int64_t> runs = {};  // exactly these, side by side in their order
  std::string tag = {};                 // all that have it, side by side
};

// Damaged runs are passed over with a warning. Of every scenario the newest run of each strategy
// and backend; a run that failed or was interrupted does not hide an earlier result. The scenario
// that ran last comes first. Of the whole database also the published runs. Every row and every
// scenario has a name of its own. Throws Error{invalid} for a filter that no stored run has, naming
// the nearest that one has, and when nothing is stored at all.
Report collect_report(Store& store, const std::string& database, const ReportFilter& filter);

}  // namespace zl
