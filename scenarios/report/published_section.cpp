#include "scenarios/report/published_section.h"

#include "results/stored_tables.h"
#include "scenarios/published/validate_tables.h"

namespace zl {
namespace {

void add_parts(std::span<const Judged> judged, Unit unit, const std::string& of,
               ReportSection& section) {
  if (judged.empty()) return;
  section.parts.push_back({.heading = of + ", by software and GPU",
                           .text = {},
                           .svg = {},
                           .table = accuracy_table(accuracy_by_software(judged), false),
                           .code = headline(judged)});
  section.parts.push_back(
      {.heading = of + ", every run", .text = {}, .svg = {}, .table = judged_table(judged, unit)});
}

}  // namespace

std::vector<PublishedPrediction> as_stored(std::span<const Judged> judged, bool is_memory) {
  std::vector<PublishedPrediction> all;
  for (const Judged& each : judged) {
    if (!each.is_predicted()) continue;
    const PublishedRun& run = *each.run;
    all.push_back({run.id, run.source, run.link, run.software, run.gpu, is_memory, each.measured,
                   each.predicted, each.low, each.high, each.left_out,
                   run.kind == TimeKind::composed, each.every});
  }
  return all;
}

StoredValidation::StoredValidation(std::span<const PublishedPrediction> stored) {
  for (const PublishedPrediction& each : stored) {
    PublishedRun& run = runs.emplace_back();
    run.id = each.run;
    run.source = each.source;
    run.link = each.link;
    run.software = each.software;
    run.gpu = each.gpu;
    run.kind = each.is_composed ? TimeKind::composed : TimeKind::measured;
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const PublishedPrediction& each = stored[i];
    (each.is_memory ? bytes : times)
        .push_back(
            {.run = &runs[i],
             .measured = each.measured,
             .predicted = each.predicted,
             .low = each.low,
             .high = each.high,
             .why_not = {},
             .left_out = each.left_out,
             .every = each.measurements.empty() ? std::vector{each.measured} : each.measurements});
  }
}

ReportSection published_section(std::span<const PublishedPrediction> stored) {
  ReportSection section{"Published runs", {}};
  if (stored.empty()) return section;
  std::string last;
  for (const PublishedPrediction& each : stored) last = std::max(last, each.predicted_at);
  section.parts.push_back(
      {"",
       "Runs that others measured and published, beside what is predicted of them under their "
       "own software, as `zerolab validate` last stored it, " +
           minute_of(last) + " UTC.",
       "",
       {}});
  const StoredValidation validation(stored);
  add_parts(validation.times, Unit::seconds, "Time of a step", section);
  add_parts(validation.bytes, Unit::bytes, "Memory of a device", section);
  return section;
}

}  // namespace zl
