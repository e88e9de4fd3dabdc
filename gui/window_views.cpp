// The pages and panels of the main window.
#include <QDockWidget>
#include <QLabel>
#include <QScrollArea>
#include <QSplitter>
#include <QTableView>

#include "gui/main_window.h"
#include "gui/models/table_model.h"
#include "gui/views/accuracy_page.h"
#include "gui/views/chart_page.h"
#include "gui/views/chart_views.h"
#include "gui/views/compare_page.h"
#include "gui/views/explain_page.h"
#include "gui/views/explore_page.h"
#include "gui/views/fit_page.h"
#include "gui/views/pages.h"
#include "gui/views/plan_page.h"
#include "gui/views/runs_page.h"
#include "gui/views/scenario_dock.h"
#include "gui/views/strategy_view.h"
#include "gui/views/sweep_page.h"
#include "gui/views/table_view.h"
#include "gui/views/trace_views.h"
#include "gui/views/train_page.h"

namespace zl::gui {

void MainWindow::add_views() {
  runs_ = new RunsPage(session_, options_.database, this);
  training_ = new TrainPage(session_, options_.database, this);
  comparison_ = new ComparePage(session_, runs_->model(), this);
  add_deciding_views();
  add_inspecting_views();
  add_run_views();
}

void MainWindow::add_deciding_views() {
  const QString decide = tr("Decide"), compare = tr("Compare");
  add_view({decide, "overview", tr("Overview"), tr("Memory, time, trade-off and traffic at once")},
           make_overview(session_, this));
  add_view({decide, "tradeoff", tr("Trade-off"), tr("Throughput against memory")},
           make_tradeoff_page(session_, this));
  add_view({decide, "fit", tr("Fit"), tr("The smallest changes that make a strategy fit")},
           new FitPage(session_, this));
  add_view({decide, "explore", tr("Explore"),
            tr("Every stage, recomputation, micro-batch and offload of one strategy")},
           new ExplorePage(session_, this));
  sweep_ = new SweepPage(session_, this);
  add_view({decide, "sweep", tr("Sweep"),
            tr("Lists of clusters, batches, lengths: a row of every combination")},
           sweep_);
  plan_ = new PlanPage(session_, this);
  add_view({decide, "plan", tr("Plan"),
            tr("Every mesh, schedule, stage and recomputation: the best of them")},
           plan_);
  connect(plan_, &PlanPage::report_wanted, this, &MainWindow::export_plan);
  add_view({compare, "memory", tr("Memory"), tr("Peak bytes by owner against the capacity")},
           make_memory_page(session_, this));
  add_view({compare, "time", tr("Time"), tr("The parts of a step, with error bars")},
           make_time_page(session_, this));
  add_view({compare, "traffic", tr("Traffic"), tr("What a rank moves in a step")},
           make_traffic_page(session_, this));
  add_view({compare, "compare", tr("A and B"),
            tr("Two strategies or stored runs: configuration, metrics, memory")},
           comparison_);
  pages_->set_group_hint(decide, tr("Which strategy to run"));
  pages_->set_group_hint(compare, tr("Strategies side by side"));
}

void MainWindow::add_inspecting_views() {
  keys_ = new TableModel(this);
  QWidget* keys_page = titled({}, make_table_view(keys_, tr("Keys of the strategy"), this));
  keys_title_ = keys_page->findChild<QLabel*>();
  const QString inspect = tr("Inspect");
  add_view({inspect, "over-time", tr("Over time"), tr("Memory over time and what is live")},
           new MemoryTimePage(session_, this));
  add_view({inspect, "timeline", tr("Timeline"), tr("What ran when on every stream")},
           new TimelinePage(session_, this));
  add_view({inspect, "explain", tr("Explain"),
            tr("Where a step's time and the peak's bytes go, and what would change them most")},
           new ExplainPage(session_, this));
  add_view({inspect, "keys", tr("Keys"), tr("What became of every DeepSpeed key")}, keys_page);
  pages_->set_group_hint(inspect, tr("One strategy in detail"));
}

void MainWindow::add_run_views() {
  const QString train = tr("Train"), runs = tr("Runs");
  add_view({train, "train", tr("Train"), tr("Real runs on this machine, with live loss")},
           training_);
  add_view({runs, "runs", tr("Runs"), tr("The database: every stored run")}, runs_);
  add_view({runs, "accuracy", tr("Accuracy"), tr("Simulated beside measured")},
           new AccuracyPage(runs_->model(), this));
  pages_->set_group_hint(train, tr("Run strategies for real"));
  pages_->set_group_hint(runs, tr("What was run, and how true the predictions were"));
}

// A window smaller than a view scrolls it.
void MainWindow::add_view(const View& described, QWidget* view) {
  auto* area = new QScrollArea;
  area->setObjectName(described.name);
  // A splitter in between has no layout: labels that wrap would else claim the height they have at
  // their narrowest.
  auto* holder = new QSplitter;
  holder->addWidget(view);
  area->setWidget(holder);
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  area->setFocusPolicy(Qt::NoFocus);
  if (view->focusProxy() != nullptr) area->setFocusProxy(view->focusProxy());
  pages_->add(described.group, described.name, described.title, described.hint, area);
}

void MainWindow::add_docks() {
  strategies_ = new StrategyView(session_, this);
  auto* bottom = new QDockWidget(tr("Strategies"), this);
  bottom->setObjectName("strategies");
  bottom->setWidget(strategies_);
  addDockWidget(Qt::BottomDockWidgetArea, bottom);
  auto* scroll = new QScrollArea;
  form_ = new ScenarioDock(session_);
  scroll->setWidget(form_);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setMinimumWidth(scroll->widget()->minimumSizeHint().width() + 16);
  auto* left = new QDockWidget(tr("Scenario"), this);
  left->setObjectName("scenario");
  left->setWidget(scroll);
  addDockWidget(Qt::LeftDockWidgetArea, left);
  setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  resizeDocks({left}, {330}, Qt::Horizontal);
  resizeDocks({bottom}, {190}, Qt::Vertical);
}

QStringList MainWindow::view_names() {
  return {"overview", "tradeoff", "fit",     "explore", "sweep",     "plan",
          "memory",   "time",     "traffic", "compare", "over-time", "timeline",
          "explain",  "keys",     "train",   "runs",    "accuracy"};
}

QWidget* MainWindow::view(const QString& name) const {
  const auto* area = qobject_cast<QScrollArea*>(pages_->page(name));
  return area ? static_cast<QSplitter*>(area->widget())->widget(0) : nullptr;
}

bool MainWindow::show_view(const QString& name) { return pages_->show_page(name); }

}  // namespace zl::gui
