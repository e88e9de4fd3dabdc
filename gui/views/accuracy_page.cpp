#include "gui/views/accuracy_page.h"

#include <QDateTime>
#include <QFileInfo>
#include <QLabel>
#include <QSplitter>
#include <QTabWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "gui/models/table_model.h"
#include "gui/plot/scatter_plot.h"
#include "gui/units.h"
#include "gui/views/chart_page.h"
#include "gui/views/published_panel.h"
#include "gui/views/table_view.h"
#include "scenarios/files/clusters.h"

namespace zl::gui {
namespace {

QString calibration_text() {
  const QFileInfo file(QString::fromStdString(local_cluster_path()));
  if (!file.exists())
    return QObject::tr("This machine is not calibrated: run `zerolab calibrate`.");
  return QObject::tr("This machine was last calibrated on %1.")
      .arg(file.lastModified().toString("yyyy-MM-dd HH:mm"));
}

Cell in_error_bar(const Prediction& each) {
  if (!(each.simulated_high > 0) || !std::isfinite(each.step_time_error)) return {};
  const bool inside = each.measured_step_time >= each.simulated_low &&
                      each.measured_step_time <= each.simulated_high;
  return std::string(inside ? "yes" : "NO");
}

Cell number(double value) { return std::isfinite(value) ? Cell(value) : Cell(); }

}  // namespace

AccuracyPage::AccuracyPage(RunModel& runs, QWidget* parent) : QWidget(parent), runs_(runs) {
  summary_ = new QLabel;
  summary_->setWordWrap(true);
  plot_ = new ScatterPlot(tr("Predicted against measured step time"));
  plot_->set_empty_text(tr("A point for each strategy that was both simulated and measured."));
  table_ = new TableModel(this);
  auto* splitter = new QSplitter(Qt::Vertical);
  splitter->addWidget(new ChartPage(plot_));
  splitter->addWidget(make_table_view(table_, tr("Simulated and measured"), this));
  auto* own = new QWidget;
  auto* column = new QVBoxLayout(own);
  column->setContentsMargins(4, 4, 4, 4);
  column->addWidget(summary_);
  column->addWidget(splitter, 1);
  published_ = new PublishedPanel(runs_);
  auto* tabs = new QTabWidget;
  tabs->setDocumentMode(true);
  tabs->addTab(own, tr("&Runs of this database"));
  tabs->addTab(published_, tr("Published r&uns"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(tabs);
  connect(&runs, &RunModel::runs_changed, this, &AccuracyPage::refill);
  connect(&runs, &RunModel::runs_changed, published_, [this] {
    if (published_->isVisible()) published_->load();
  });
  connect(&runs, &RunModel::failed, summary_, &QLabel::setText);
  refill();
}

void AccuracyPage::refill() {
  std::vector<Prediction> predictions;
  try {
    predictions = runs_.predictions();
  } catch (const Error& error) {
    return summary_->setText(error.what());
  }
  Table table;
  table.columns = {{"scenario", Align::left},
                   {"strategy", Align::left},
                   {"backend", Align::left},
                   {"measured", Align::right, Unit::seconds},
                   {"predicted", Align::right, Unit::seconds},
                   {"step time error", Align::right, Unit::fraction},
                   {"in error bar", Align::left},
                   {"memory error", Align::right, Unit::fraction},
                   {"wire error", Align::right, Unit::fraction},
                   {"measured run", Align::right},
                   {"simulated run", Align::right}};
  ScatterData chart;
  chart.x_name = tr("measured (median step)");
  chart.y_name = tr("predicted (90 % error bar)");
  chart.x_unit = chart.y_unit = Unit::seconds;
  chart.diagonal = true;
  std::vector<double> errors;
  for (const Prediction& each : predictions) {
    table.rows.push_back({each.scenario_name, each.strategy, each.backend,
                          number(each.measured_step_time), number(each.simulated_step_time),
                          number(each.step_time_error), in_error_bar(each),
                          number(each.peak_device_error), number(each.wire_bytes_error),
                          each.measured_run, each.simulated_run});
    if (!std::isfinite(each.step_time_error)) continue;
    chart.points.push_back({QString::fromStdString(each.scenario_name + ": " + each.strategy),
                            each.measured_step_time, each.simulated_step_time, true,
                            each.simulated_low, each.simulated_high});
    errors.push_back(std::abs(each.step_time_error));
  }
  std::sort(errors.begin(), errors.end());
  summary_->setText(
      errors.empty()
          ? tr("No scenario was both measured and simulated yet: `zerolab run demo --backend "
               "cpu,sim` does both.")
          : tr("%1; step time off by %2 in the median, %3 at worst. %4")
                .arg(errors.size() == 1 ? tr("1 pair") : tr("%1 pairs").arg(errors.size()))
                .arg(share_text(errors[errors.size() / 2]), share_text(errors.back()),
                     calibration_text()));
  plot_->set_data(std::move(chart));
  table_->set_table(std::move(table));
}

}  // namespace zl::gui
