// The section of a report that shows a step over time, and why it takes so long.
#include "core/trace/event.h"
#include "results/report_sections.h"

namespace zl {
namespace {

Table lanes_table(const ReportStep& step) {
  Table table{{{"stream", Align::left},
               {"operations"},
               {"busy", Align::right, Unit::seconds},
               {"share of the step", Align::right, Unit::fraction}},
              {}};
  for (const ChartLane& lane : step.lanes) {
    double busy = 0;
    for (const ChartSpan& span : lane.spans) busy += span.end - span.start;
    table.rows.push_back({lane.name, static_cast<std::int64_t>(lane.spans.size()), busy,
                          step.seconds > 0 ? Cell(busy / step.seconds) : Cell()});
  }
  return table;
}

ReportPart lanes_part(const ReportStep& step) {
  if (!step.problem.empty()) return {step.strategy, "Not simulated: " + step.problem, "", {}};
  LaneChart chart;
  chart.text = {
      "One step of " + step.strategy,
      "One lane per stage of a pipeline, its boxes numbered by micro-batch, and per stream of a "
      "rank; operations are coloured by their phase. The table says how busy each is."};
  chart.duration = step.seconds;
  chart.lanes = step.lanes;
  for (std::size_t i = 0; i < kPhases; ++i) {
    chart.series.emplace_back(name_of(static_cast<Phase>(i)));
  }
  return {step.strategy, "The last step takes " + readable(step.seconds, Unit::seconds) + ".",
          svg_lanes(chart), lanes_table(step)};
}

}  // namespace

ReportSection timeline_section(const ReportScenario& scenario) {
  ReportSection section{"Timeline of one step", {}};
  section.parts.push_back(
      {"",
       "Simulated when this report was written, with the prices that the "
       "cluster has now; a strategy that does not fit as if it did. Where operations are too "
       "short to be seen, a block is as high as they fill the time.",
       "",
       {}});
  for (const ReportStep& step : scenario.steps) {
    section.parts.push_back(lanes_part(step));
    if (!step.longest.rows.empty()) {
      section.parts.push_back({step.strategy + ": the longest work",
                               "What limits it, and its share of that limit's peak.", "",
                               without_empty_columns(step.longest)});
    }
    if (step.levers.rows.empty()) continue;
    section.parts.push_back({step.strategy + ": with twice as much",
                             "What the step would take then.", "", step.levers});
  }
  return section;
}

}  // namespace zl
