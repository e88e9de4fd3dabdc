#include "gui/models/run_charts.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace zl::gui {
namespace {

using Runs = std::span<const RunSummary* const>;

QString text(const std::string& value) { return QString::fromStdString(value); }

// The x axis of `count` steps that follow the first `before` ones of a training.
std::vector<double> step_numbers(std::int64_t before, std::size_t count) {
  std::vector<double> steps(count);
  std::iota(steps.begin(), steps.end(), static_cast<double>(before + 1));
  return steps;
}

Curve live_curve(const LiveRun& run) {
  const auto done = static_cast<std::int64_t>(run.loss.size());
  return {QObject::tr("running: %1, step %2 of %3")
              .arg(text(run.strategy))
              .arg(run.first_step + done)
              .arg(run.steps),
          step_numbers(run.first_step, run.loss.size()), run.loss};
}

// The distinct texts of the runs, sorted, as an axis.
struct Names {
  Names(Runs runs, std::string RunSummary::*member) {
    for (const RunSummary* run : runs) names.insert(text(run->*member));
  }
  double place(const std::string& name) const {
    return static_cast<double>(std::distance(names.begin(), names.find(text(name))));
  }
  std::set<QString> names;
};

double if_positive(double value) { return value > 0 ? value : NAN; }

template <class Value>
void add_axis(ParallelData& chart, Runs runs, const QString& name, Value value_of) {
  const auto has_value = [&](const RunSummary* run) { return std::isfinite(value_of(*run)); };
  if (std::none_of(runs.begin(), runs.end(), has_value)) return;
  chart.axes.push_back({name});
  for (std::size_t i = 0; i < runs.size(); ++i) chart.lines[i].values.push_back(value_of(*runs[i]));
}

void add_training_axes(ParallelData& chart, Runs runs) {
  add_axis(chart, runs, QObject::tr("tokens/step"), [](const RunSummary& run) {
    const bool is_judged = std::isfinite(run.best_validation_loss);
    return is_judged ? static_cast<double>(run.tokens_per_step()) : NAN;
  });
  add_axis(chart, runs, QObject::tr("learning rate"),
           [](const RunSummary& run) { return run.learning_rate; });
  add_axis(chart, runs, QObject::tr("validation loss"),
           [](const RunSummary& run) { return run.best_validation_loss; });
}

}  // namespace

Curve validation_curve(const QString& name, const std::vector<EvaluationPoint>& evaluations) {
  Curve curve{QObject::tr("%1, validation").arg(name), {}, {}};
  for (const EvaluationPoint& point : evaluations) {
    curve.x.push_back(static_cast<double>(point.step));
    curve.y.push_back(point.loss);
  }
  return curve;
}

LineData loss_curves(std::span<const LiveRun> live, std::span<const NamedResult> results) {
  LineData chart;
  chart.x_name = QObject::tr("step");
  chart.y_name = QObject::tr("loss");
  chart.from_zero = false;
  for (const LiveRun& run : live) chart.curves.push_back(live_curve(run));
  for (const auto& [id, result] : results) {
    if (chart.curves.size() >= kMostLossCurves) break;
    if (result->loss.empty()) continue;
    const QString name = QObject::tr("%1: %2").arg(id).arg(text(result->strategy));
    chart.curves.push_back(
        {name, step_numbers(result->first_step, result->loss.size()), result->loss});
    if (!result->evaluations.empty()) {
      chart.curves.push_back(validation_curve(name, result->evaluations));
    }
  }
  return chart;
}

ParallelData runs_side_by_side(Runs runs) {
  const Names strategies(runs, &RunSummary::strategy), backends(runs, &RunSummary::backend);
  ParallelData chart;
  chart.axes = {
      {QObject::tr("backend"), Unit::none, {backends.names.begin(), backends.names.end()}},
      {QObject::tr("ranks")},
      {QObject::tr("strategy"), Unit::none, {strategies.names.begin(), strategies.names.end()}},
      {QObject::tr("memory"), Unit::bytes},
      {QObject::tr("wire/step"), Unit::bytes},
      {QObject::tr("step time"), Unit::seconds},
      {QObject::tr("tokens/s")}};
  for (const RunSummary* run : runs) {
    chart.lines.push_back(
        {QObject::tr("run %1: %2, %3")
             .arg(run->id)
             .arg(text(run->scenario_name), text(run->strategy)),
         {backends.place(run->backend), static_cast<double>(run->ranks),
          strategies.place(run->strategy), if_positive(static_cast<double>(run->peak_device_bytes)),
          run->peak_device_bytes > 0 ? static_cast<double>(run->wire_bytes_per_step) : NAN,
          if_positive(run->step_time_median), if_positive(run->tokens_per_second)},
         run->outcome == Outcome::ok});
  }
  add_training_axes(chart, runs);
  return chart;
}

}  // namespace zl::gui
