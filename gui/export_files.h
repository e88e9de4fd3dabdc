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
// The same of the strategies of a study, nothing stored. Throws Error{invalid} without any.
void save_study_report(const Study& study, const std::vector<const StrategyStudy*>& strategies,
                       const QString& file);
// Markdown for a .md file, else HTML. Throws Error{invalid} when the database has no runs.
// `runs`: exactly these, side by side; none: the newest of every scenario, strategy and backend.
void save_report(const std::filesystem::path& database, const QString& file,
                 const std::vector<std::int64_t>& runs = {});

}  // namespace zl::gui
