#include "gui/views/chart_views.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QGridLayout>
#include <QResizeEvent>
#include <algorithm>
#include <vector>

#include "gui/models/chart_data.h"

namespace zl::gui {
namespace {

// Calls `fill` now and whenever what the charts show has changed.
template <class Fill>
void follow(Session& session, QObject* context, Fill fill) {
  const auto update = [&session, fill] {
    if (session.study()) fill(*session.study(), session.shown());
  };
  QObject::connect(&session, &Session::study_changed, context, update);
  QObject::connect(&session, &Session::filter_changed, context, update);
  update();
}

// A bar of the chart selects its strategy, and shows which are selected; while `other` is checked
// its bars are of something else.
void select_on_activation(Session& session, Plot* plot, const QCheckBox* other = nullptr) {
  highlight_selection(session, plot, other);
  QObject::connect(plot, &Plot::activated, plot, [&session, other](int row) {
    const auto shown = session.shown();
    if (other != nullptr && other->isChecked()) return;
    if (row < 0 || row >= static_cast<int>(shown.size())) return;
    session.select({QString::fromStdString(shown[row]->name())});
  });
}

// Two columns of charts, or one where two do not fit.
class Overview : public QWidget {
 public:
  explicit Overview(QWidget* parent) : QWidget(parent), grid_(new QGridLayout(this)) {
    grid_->setContentsMargins(0, 0, 0, 0);
    grid_->setSpacing(6);
    grid_->setSizeConstraint(QLayout::SetNoConstraint);
  }

  void add(QWidget* chart) {
    charts_.push_back(chart);
    arrange(2);
  }
  QSize minimumSizeHint() const override { return {widest(), grid_->minimumSize().height()}; }

 protected:
  void resizeEvent(QResizeEvent* event) override {
    QWidget::resizeEvent(event);
    fold();
  }
  // A chart whose switches come or go needs another width.
  bool event(QEvent* event) override {
    if (event->type() == QEvent::LayoutRequest) {
      fold();
      updateGeometry();
    }
    return QWidget::event(event);
  }

 private:
  void fold() {
    const int columns = width() < 2 * widest() + grid_->spacing() ? 1 : 2;
    if (columns != columns_) arrange(columns);
  }
  int widest() const {
    int widest = 0;
    for (const QWidget* chart : charts_)
      widest = std::max(widest, chart->minimumSizeHint().width());
    return widest;
  }
  void arrange(int columns) {
    columns_ = columns;
    // Side by side, so that all are in sight at once; below each other they scroll.
    for (QWidget* chart : charts_) {
      auto* bars = chart->findChild<BarPlot*>();
      if (bars != nullptr) bars->set_compact(columns == 2);
    }
    for (std::size_t i = 0; i < charts_.size(); ++i) {
      const int at = static_cast<int>(i);
      grid_->addWidget(charts_[i], at / columns, at % columns);
      grid_->setRowStretch(at, at * columns < static_cast<int>(charts_.size()));
    }
    grid_->setColumnStretch(0, 1);
    grid_->setColumnStretch(1, columns - 1);
    updateGeometry();
  }

  QGridLayout* grid_;
  std::vector<QWidget*> charts_;
  int columns_ = 2;
};

}  // namespace

void highlight_selection(Session& session, Plot* plot, const QCheckBox* other) {
  const auto update = [&session, plot, other] {
    std::vector<int> rows;
    int row = 0;
    for (const StrategyStudy* each : session.shown()) {
      if (other != nullptr && other->isChecked()) break;
      if (session.selection().contains(QString::fromStdString(each->name()))) rows.push_back(row);
      ++row;
    }
    plot->set_highlighted(rows);
  };
  for (const auto signal :
       {&Session::study_changed, &Session::filter_changed, &Session::selection_changed}) {
    QObject::connect(&session, signal, plot, update);
  }
  if (other != nullptr) QObject::connect(other, &QCheckBox::toggled, plot, update);
}

ChartPage* make_memory_page(Session& session, QWidget* parent) {
  auto* plot = new BarPlot(QObject::tr("Peak memory of a rank"));
  auto* page = new ChartPage(plot, parent);
  auto* tier = new QComboBox;
  tier->addItems({QObject::tr("device"), QObject::tr("host"), QObject::tr("NVMe")});
  tier->setAccessibleName(QObject::tr("Memory tier"));
  auto* share = new QCheckBox(QObject::tr("shares"));
  page->add_control(tier);
  page->add_control(share);
  auto* stages = new QCheckBox(QObject::tr("stages"));
  stages->setToolTip(QObject::tr("Every stage of the selected strategy's pipeline"));
  page->add_control(stages);
  const auto fill = [plot, tier, stages, &session](const Study& study, const Strategies& shown) {
    const StrategyStudy* current = session.current();
    const bool has = current != nullptr && !current->result.stages.empty();
    stages->setVisible(has);
    tier->setEnabled(!has || !stages->isChecked());
    plot->set_data(has && stages->isChecked()
                       ? stage_memory_bars(study, *current)
                       : memory_bars(study, shown, static_cast<MemoryTier>(tier->currentIndex())));
  };
  follow(session, page, fill);
  const auto again = [&session, fill] {
    if (session.study()) fill(*session.study(), session.shown());
  };
  QObject::connect(stages, &QCheckBox::toggled, page, again);
  QObject::connect(&session, &Session::selection_changed, page, again);
  QObject::connect(tier, &QComboBox::currentIndexChanged, page, again);
  QObject::connect(share, &QCheckBox::toggled, plot, &BarPlot::set_share);
  select_on_activation(session, plot, stages);
  return page;
}

ChartPage* make_time_page(Session& session, QWidget* parent) {
  auto* plot = new BarPlot(QObject::tr("Step time"));
  auto* page = new ChartPage(plot, parent);
  auto* share = new QCheckBox(QObject::tr("shares"));
  page->add_control(share);
  follow(session, page,
         [plot](const Study&, const Strategies& shown) { plot->set_data(time_bars(shown)); });
  QObject::connect(share, &QCheckBox::toggled, plot, &BarPlot::set_share);
  select_on_activation(session, plot);
  return page;
}

ChartPage* make_tradeoff_page(Session& session, QWidget* parent) {
  auto* plot = new ScatterPlot(QObject::tr("Throughput and memory"));
  auto* page = new ChartPage(plot, parent);
  follow(session, page, [plot](const Study& study, const Strategies& shown) {
    plot->set_data(tradeoff(study, shown));
  });
  QObject::connect(plot, &ScatterPlot::rows_selected, page,
                   [&session](const std::vector<int>& rows) {
                     QStringList names;
                     const auto shown = session.shown();
                     for (const int row : rows) {
                       names << QString::fromStdString(shown[row]->name());
                     }
                     session.select(names);
                   });
  select_on_activation(session, plot);
  return page;
}

ChartPage* make_traffic_page(Session& session, QWidget* parent) {
  auto* plot = new BarPlot(QObject::tr("Moved by a rank in a step"));
  auto* page = new ChartPage(plot, parent);
  auto* per_parameter = new QCheckBox(QObject::tr("per parameter"));
  page->add_control(per_parameter);
  const auto fill = [plot, per_parameter](const Study& study, const Strategies& shown) {
    plot->set_data(traffic_bars(study, shown, per_parameter->isChecked()));
  };
  follow(session, page, fill);
  QObject::connect(per_parameter, &QCheckBox::toggled, page, [&session, fill] {
    if (session.study()) fill(*session.study(), session.shown());
  });
  select_on_activation(session, plot);
  return page;
}

QWidget* make_overview(Session& session, QWidget* parent) {
  auto* overview = new Overview(parent);
  overview->add(make_memory_page(session, overview));
  overview->add(make_time_page(session, overview));
  overview->add(make_tradeoff_page(session, overview));
  overview->add(make_traffic_page(session, overview));
  return overview;
}

}  // namespace zl::gui
