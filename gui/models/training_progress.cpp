#include "gui/models/training_progress.h"

#include <map>

#include "gui/models/meaning.h"
#include "gui/models/run_charts.h"

namespace zl::gui {

void TrainingProgress::begin(const QStringList& strategies, std::int64_t steps) {
  rows_.clear();
  steps_ = steps;
  for (const QString& name : strategies) {
    rows_.push_back({name});
    rows_.back().state = tr("waiting");
  }
}

void TrainingProgress::begin_strategy(int index, const QString& state) {
  rows_[index].state = state;
}

void TrainingProgress::take_step(const RunProgress& progress) {
  Row& row = rows_[progress.index];
  row.last = progress;
  row.step.push_back(static_cast<double>(progress.step));
  row.loss.push_back(progress.loss);
  row.grad_norm.push_back(progress.grad_norm);
  row.learning_rate.push_back(progress.learning_rate);
  row.state = tr("running");
}

void TrainingProgress::take_evaluation(int index, const EvaluationPoint& point) {
  rows_[index].evaluations.push_back(point);
}

void TrainingProgress::end_strategy(int index, const RunResult& result) {
  Row& row = rows_[index];
  row.result = result;
  const QString message = QString::fromStdString(result.message);
  if (result.outcome == Outcome::ok && result.steps == 0) {
    row.state = tr("nothing was left: the checkpoint is of step %1").arg(result.first_step);
  } else if (result.outcome == Outcome::ok) {
    row.state = result.predicted ? tr("simulated") : tr("trained");
  } else if (result.outcome == Outcome::interrupted) {
    row.state = message;
  } else {
    row.state = QString(name_of(result.outcome)) + ": " + message;
  }
  if (result.run_id != 0) row.state += tr(", stored as run %1").arg(result.run_id);
}

void TrainingProgress::end() {
  for (Row& row : rows_) {
    if (!row.result) row.state = tr("not started");
  }
}

QString TrainingProgress::verdict(bool stores) const {
  int stored = 0, good = 0, failed = 0;
  std::map<QString, int> others;
  for (const Row& row : rows_) {
    if (row.result && row.result->run_id != 0) ++stored;
    if (row.result && row.result->outcome == Outcome::ok) {
      ++good;
    } else {
      ++others[row.result ? QString(name_of(row.result->outcome)) : tr("not started")];
      failed += row.result && row.result->outcome != Outcome::interrupted ? 1 : 0;
    }
  }
  const auto all = static_cast<int>(rows_.size());
  QStringList parts;
  for (const auto& [what, count] : others) parts << tr("%1 %2").arg(count).arg(what);
  const QString text = good == all ? tr("%1 of %1 done").arg(all)
                       : failed == all
                           ? tr("%1 of %1 failed: %2").arg(all).arg(parts.join(", "))
                           : tr("%1 of %2 done, %3").arg(good).arg(all).arg(parts.join(", "));
  if (!stores) return text + ".";
  return text + (stored > 0 ? tr("; %1 stored, see the Runs page.").arg(stored)
                            : tr("; nothing is stored."));
}

std::vector<Cell> TrainingProgress::cells_of(const Row& row) const {
  const bool ended = row.result && row.result->outcome == Outcome::ok && row.result->steps > 0;
  const bool begun = row.last.step > 0;
  const EvaluationPoint* best = best_of(row.evaluations);
  const auto number = [](bool known, double value) { return known ? Cell(value) : Cell(); };
  const double step_time = ended ? row.result->step_time.median : row.last.step_time;
  const double tokens = ended ? row.result->tokens_per_second : row.last.tokens_per_second;
  const double peak =
      static_cast<double>(ended ? row.result->peak_device.total() : row.last.peak_device);
  const bool is_whole = row.result && row.result->outcome == Outcome::ok;
  const std::int64_t step = is_whole ? row.result->first_step + row.result->steps : row.last.step;
  return {row.strategy.toStdString(),
          step,
          steps_,
          number(begun, row.last.loss),
          number(best != nullptr, best == nullptr ? 0 : best->loss),
          number(best != nullptr, best == nullptr ? 0 : best->perplexity()),
          number(ended || begun, step_time),
          number(begun && !row.result, step_time * static_cast<double>(steps_ - step)),
          number(ended || begun, tokens),
          number(ended || begun, peak),
          row.state.toStdString()};
}

Table TrainingProgress::table() const {
  Table table;
  table.columns = {{"strategy", Align::left},
                   {"step", Align::right},
                   {"of", Align::right},
                   {"loss", Align::right},
                   {"validation loss", Align::right},
                   {"perplexity", Align::right},
                   {"step time", Align::right, Unit::seconds},
                   {"left", Align::right, Unit::seconds},
                   {"tokens/s", Align::right},
                   {"peak device", Align::right, Unit::bytes},
                   {"state", Align::left}};
  for (const Row& row : rows_) table.rows.push_back(cells_of(row));
  return table;
}

LineData TrainingProgress::curves(TrainingCurve what) const {
  LineData chart;
  chart.x_name = tr("step");
  chart.from_zero = false;
  for (const Row& row : rows_) {
    const auto& y = what == TrainingCurve::loss        ? row.loss
                    : what == TrainingCurve::grad_norm ? row.grad_norm
                                                       : row.learning_rate;
    chart.curves.push_back({row.strategy, row.step, y, style_of_strategy(row.strategy)});
    if (what == TrainingCurve::loss && !row.evaluations.empty()) {
      chart.curves.push_back(validation_curve(row.strategy, row.evaluations));
    }
  }
  return chart;
}

}  // namespace zl::gui
