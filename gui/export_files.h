// Whole files for other programs: traces, memory snapshots, reports.
// Ownership: none kept. Threads: GUI thread.
#pragma once

#include <QString>
#include <filesystem>
#include <vector>

#include "scenarios/planner/study.h"

namespace zl::gui {

// All throw Error{failed} when the file cannot be written.

// The strategies side by side, for https://ui.perfetto.dev.
void save_perfetto(const Study& study, const std::vector<const StrategyStudy*>& strategies,
                   const QString& file);
// For https://pytorch.org/memory_viz.
void save_memory_snapshot(const StrategyStudy& strategy, const QString& file);
// Markdown for a .md file, else HTML. Throws Error{invalid} when the database has no runs.
void save_report(const std::filesystem::path& database, const QString& file);

}  // namespace zl::gui
