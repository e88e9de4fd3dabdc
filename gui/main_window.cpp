#include "gui/main_window.h"

#include <QDockWidget>
#include <QLabel>
#include <QMenuBar>
#include <QScrollArea>
#include <QStatusBar>
#include <QTabWidget>

#include "gui/units.h"
#include "gui/views/chart_views.h"
#include "gui/views/scenario_dock.h"
#include "gui/views/strategy_view.h"
#include "gui/views/trace_views.h"

namespace zl::gui {

MainWindow::MainWindow(Session& session, QWidget* parent) : QMainWindow(parent), session_(session) {
  setObjectName("main");
  setWindowTitle("zerolab");
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  setCentralWidget(tabs_);
  add_view("overview", tr("Overview"), make_overview(session, this));
  add_view("memory", tr("Memory"), make_memory_page(session, this));
  add_view("time", tr("Step time"), make_time_page(session, this));
  add_view("tradeoff", tr("Trade-off"), make_tradeoff_page(session, this));
  add_view("traffic", tr("Traffic"), make_traffic_page(session, this));
  add_view("over-time", tr("Over time"), new MemoryTimePage(session, this));
  add_view("timeline", tr("Timeline"), new TimelinePage(session, this));
  strategies_ = new StrategyView(session, this);
  auto* bottom = new QDockWidget(tr("Strategies"), this);
  bottom->setObjectName("strategies");
  bottom->setWidget(strategies_);
  addDockWidget(Qt::BottomDockWidgetArea, bottom);
  auto* scroll = new QScrollArea;
  scroll->setWidget(new ScenarioDock(session));
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* left = new QDockWidget(tr("Scenario"), this);
  left->setObjectName("scenario");
  left->setWidget(scroll);
  addDockWidget(Qt::LeftDockWidgetArea, left);
  resizeDocks({left}, {330}, Qt::Horizontal);
  resizeDocks({bottom}, {210}, Qt::Vertical);
  setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  status_ = new QLabel;
  statusBar()->addWidget(status_, 1);
  build_menus();
  connect(&session, &Session::evaluation_started, this, &MainWindow::update_status);
  connect(&session, &Session::study_changed, this, &MainWindow::update_status);
  connect(&session, &Session::failed, this, &MainWindow::update_status);
  resize(1280, 800);
}

void MainWindow::add_view(const QString& name, const QString& title, QWidget* view) {
  view->setObjectName(name);
  tabs_->addTab(view, title);
}

QStringList MainWindow::view_names() {
  return {"overview", "memory", "time", "tradeoff", "traffic", "over-time", "timeline"};
}

bool MainWindow::show_view(const QString& name) {
  for (int i = 0; i < tabs_->count(); ++i) {
    if (tabs_->widget(i)->objectName() != name) continue;
    tabs_->setCurrentIndex(i);
    return true;
  }
  return false;
}

void MainWindow::build_menus() {}

void MainWindow::update_status() {
  if (session_.evaluating()) {
    status_->setText(tr("Simulating…"));
  } else if (!session_.error().isEmpty()) {
    status_->setText(session_.error());
  } else if (const auto study = session_.study()) {
    status_->setText(tr("%1 on %2, %3 ranks: %4 strategies simulated in %5 (%6 recorded, the rest "
                        "only priced again)")
                         .arg(QString::fromStdString(study->scenario.model.name),
                              QString::fromStdString(study->scenario.cluster),
                              count_text(static_cast<double>(study->scenario.run.ranks)))
                         .arg(study->strategies.size())
                         .arg(seconds_text(study->seconds))
                         .arg(study->recorded));
  }
}

}  // namespace zl::gui
