#include "results/report_stages.h"

namespace zl {

ReportPart stages_part(const ReportRun& run) {
  Table table{{{"stage"},
               {"ranks", Align::left},
               {"device", Align::right, Unit::bytes},
               {"reserved", Align::right, Unit::bytes},
               {"step", Align::right, Unit::seconds},
               {"bubble", Align::right, Unit::seconds}},
              {}};
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    table.columns.push_back({name_of(static_cast<MemoryTag>(i)), Align::right, Unit::bytes});
  }
  for (const StageResult& stage : run.result.stages) {
    const int last = stage.rank + stage.ranks - 1;
    auto& row = table.rows.emplace_back();
    row = {static_cast<std::int64_t>(table.rows.size()) - 1,
           std::to_string(stage.rank) + (last > stage.rank ? "-" + std::to_string(last) : ""),
           stage.peak_device.total(),
           stage.reserved_device,
           stage.step_seconds,
           stage.time.bubble};
    for (const std::int64_t bytes : stage.peak_device.tag) row.emplace_back(bytes);
  }
  return {run_label(run),
          "The stages of the pipeline; the highest peak is that of rank " +
              std::to_string(run.result.rank) + ".",
          "", table};
}

}  // namespace zl
