// The section of a report that says how a training went.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/report_sections.h"

namespace zl {
namespace {

bool was_trained(const ReportRun& run) { return !run.result.predicted && !run.result.loss.empty(); }

struct Metric {
  const char* heading;
  const char* name;
  std::vector<double> RunResult::*values;
};
constexpr Metric kMetrics[] = {
    {"Loss", "The loss", &RunResult::loss},
    {"Gradient norm", "The gradient norm before clipping", &RunResult::grad_norm},
    {"Learning rate", "The learning rate", &RunResult::learning_rate}};

ReportPart curve_part(const ReportScenario& scenario, const Metric& metric) {
  CurveChart chart;
  chart.text = {std::string(metric.name) + " over the steps, " + scenario.name,
                "One curve per run; the table of the training has the ends of the losses."};
  for (const ReportRun& run : scenario.runs) {
    if (!was_trained(run)) continue;
    ChartCurve curve{run_label(run), run.result.first_step + 1, run.result.*metric.values};
    // Skipped steps have a norm of -1.
    for (double& value : curve.values) {
      if (value < 0) value = std::nan("");
    }
    chart.curves.push_back(std::move(curve));
  }
  return {metric.heading, "", svg_curves(chart), {}};
}

// Empty: no model was judged while it trained.
std::vector<ReportPart> evaluation_part(const ReportScenario& scenario) {
  CurveChart chart;
  chart.text = {"The validation loss over the steps, " + scenario.name,
                "One curve per run; the table of the training has the lowest."};
  for (const ReportRun& run : scenario.runs) {
    if (run.result.evaluations.empty()) continue;
    ChartCurve& curve = chart.curves.emplace_back(ChartCurve{run_label(run), 1, {}});
    for (const EvaluationPoint& point : run.result.evaluations) {
      curve.values.push_back(point.loss);
      curve.steps.push_back(point.step);
    }
  }
  if (chart.curves.empty()) return {};
  return {{"Validation loss",
           "Mean over the tokens that count, without dropout.",
           svg_curves(chart),
           {}}};
}

double lowest(const std::vector<double>& values) {
  double least = std::nan("");
  for (const double value : values) {
    if (!(value >= least)) least = value;
  }
  return least;
}

Cell finite(double value) { return std::isfinite(value) ? Cell(value) : Cell(); }

}  // namespace

ReportSection training_section(const ReportScenario& scenario) {
  Table table{{{"strategy", Align::left},
               {"backend", Align::left},
               {"outcome", Align::left},
               {"first step"},
               {"last step"},
               {"first loss"},
               {"last loss"},
               {"lowest loss"},
               {"validation loss"},
               {"perplexity"},
               {"after step"},
               {"skipped steps"}},
              {}};
  for (const ReportRun& run : scenario.runs) {
    if (!was_trained(run)) continue;
    const RunResult& result = run.result;
    const EvaluationPoint* best = best_evaluation(result);
    table.rows.push_back({name_of(run), result.backend, std::string(name_of(result.outcome)),
                          result.first_step + 1, result.first_step + result.steps,
                          finite(result.loss.front()), finite(result.loss.back()),
                          finite(lowest(result.loss)), best == nullptr ? Cell() : Cell(best->loss),
                          best == nullptr ? Cell() : finite(best->perplexity()),
                          best == nullptr ? Cell() : Cell(best->step), result.skipped_steps});
  }
  ReportSection section{"Training", {}};
  if (table.rows.empty()) return section;
  std::string text = "Mean over ranks and micro-batches of each step.";
  if (table.rows.size() > kSeries) {
    text += fmt::format(" Colours repeat after {} curves.", kSeries);
  }
  section.parts.push_back({"", text, "", without_empty_columns(std::move(table))});
  for (const Metric& metric : kMetrics) section.parts.push_back(curve_part(scenario, metric));
  for (ReportPart& part : evaluation_part(scenario)) section.parts.push_back(std::move(part));
  return section;
}

}  // namespace zl
