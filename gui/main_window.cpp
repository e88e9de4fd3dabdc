#include "gui/main_window.h"

#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QLabel>
#include <QMimeData>
#include <QScrollArea>
#include <QSettings>
#include <QSplitter>
#include <QStatusBar>
#include <QTabWidget>
#include <QTableView>
#include <QUrl>

#include "core/base/error.h"
#include "gui/command_line.h"
#include "gui/import_file.h"
#include "gui/models/table_model.h"
#include "gui/units.h"
#include "gui/views/accuracy_page.h"
#include "gui/views/chart_views.h"
#include "gui/views/compare_page.h"
#include "gui/views/explore_page.h"
#include "gui/views/fit_page.h"
#include "gui/views/runs_page.h"
#include "gui/views/scenario_dock.h"
#include "gui/views/strategy_view.h"
#include "gui/views/trace_views.h"
#include "gui/views/train_page.h"

namespace zl::gui {

MainWindow::MainWindow(Session& session, const WindowOptions& options, QWidget* parent)
    : QMainWindow(parent), session_(session), options_(options) {
  setObjectName("main");
  setWindowTitle("zerolab");
  setAcceptDrops(true);
  setDockOptions(AnimatedDocks | AllowTabbedDocks | AllowNestedDocks);
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  tabs_->setUsesScrollButtons(true);
  setCentralWidget(tabs_);
  add_views();
  add_docks();
  status_ = new QLabel;
  status_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  status_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  statusBar()->addWidget(status_, 1);
  build_menus();
  follow_runs();
  follow_session();
  resize(1280, 800);
}

void MainWindow::add_views() {
  runs_ = new RunsPage(session_, options_.database, this);
  training_ = new TrainPage(session_, options_.database, this);
  comparison_ = new ComparePage(session_, runs_->model(), this);
  keys_ = new TableModel(this);
  QWidget* keys_page = titled({}, make_table_view(keys_, tr("Keys of the strategy"), this));
  keys_title_ = keys_page->findChild<QLabel*>();
  add_view("overview", tr("Overview"), make_overview(session_, this));
  add_view("memory", tr("Memory"), make_memory_page(session_, this));
  add_view("time", tr("Time"), make_time_page(session_, this));
  add_view("tradeoff", tr("Trade-off"), make_tradeoff_page(session_, this));
  add_view("traffic", tr("Traffic"), make_traffic_page(session_, this));
  add_view("over-time", tr("Over time"), new MemoryTimePage(session_, this));
  add_view("timeline", tr("Timeline"), new TimelinePage(session_, this));
  add_view("compare", tr("Compare"), comparison_);
  add_view("fit", tr("Fit"), new FitPage(session_, this));
  add_view("explore", tr("Explore"), new ExplorePage(session_, this));
  add_view("keys", tr("Keys"), keys_page);
  add_view("train", tr("Train"), training_);
  add_view("runs", tr("Runs"), runs_);
  add_view("accuracy", tr("Accuracy"), new AccuracyPage(runs_->model(), this));
}

void MainWindow::follow_runs() {
  connect(runs_, &RunsPage::compare, this, [this](qint64 a, qint64 b) {
    comparison_->compare_runs(a, b);
    show_view("compare");
  });
  connect(runs_, &RunsPage::run_again, this,
          [this](const Scenario& scenario, const QString& strategy, const QString& backend) {
            show_view("train");
            training_->start(scenario, {strategy.toStdString()}, backend.toStdString());
          });
}

void MainWindow::follow_session() {
  connect(&session_, &Session::evaluation_started, this, &MainWindow::update_status);
  connect(&session_, &Session::study_changed, this, &MainWindow::update_status);
  connect(&session_, &Session::failed, this, &MainWindow::update_status);
  connect(&session_, &Session::study_changed, this, &MainWindow::show_keys);
  connect(&session_, &Session::selection_changed, this, &MainWindow::show_keys);
}

// A window smaller than a view scrolls it.
void MainWindow::add_view(const QString& name, const QString& title, QWidget* view) {
  auto* area = new QScrollArea;
  area->setObjectName(name);
  // A splitter in between has no layout: labels that wrap would else claim the height they have at
  // their narrowest.
  auto* holder = new QSplitter;
  holder->addWidget(view);
  area->setWidget(holder);
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  area->setFocusPolicy(Qt::NoFocus);
  tabs_->addTab(area, title);
}

void MainWindow::add_docks() {
  strategies_ = new StrategyView(session_, this);
  auto* bottom = new QDockWidget(tr("Strategies"), this);
  bottom->setObjectName("strategies");
  bottom->setWidget(strategies_);
  addDockWidget(Qt::BottomDockWidgetArea, bottom);
  auto* scroll = new QScrollArea;
  scroll->setWidget(new ScenarioDock(session_));
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
  return {"overview", "memory", "time",    "tradeoff", "traffic", "over-time", "timeline",
          "compare",  "fit",    "explore", "keys",     "train",   "runs",      "accuracy"};
}

QWidget* MainWindow::view(const QString& name) const {
  const auto* area = tabs_->findChild<QScrollArea*>(name);
  return area ? static_cast<QSplitter*>(area->widget())->widget(0) : nullptr;
}

bool MainWindow::show_view(const QString& name) {
  auto* area = tabs_->findChild<QScrollArea*>(name);
  if (area) tabs_->setCurrentWidget(area);
  return area != nullptr;
}

void MainWindow::show_keys() {
  const StrategyStudy* strategy = session_.current();
  keys_->set_table(strategy ? effects_table(strategy->imported) : Table{});
  const QString name = strategy ? QString::fromStdString(strategy->name()) : QString();
  keys_title_->setText(strategy ? tr("Keys of %1").arg(name) : name);
}

void MainWindow::say(const QString& message) { statusBar()->showMessage(message, 8000); }

void MainWindow::update_status() {
  const auto study = session_.study();
  if (session_.evaluating()) {
    status_->setText(tr("Simulating…"));
  } else if (!session_.error().isEmpty()) {
    status_->setText(session_.error());
  } else if (study) {
    status_->setText(tr("%1 on %2, %3 ranks · %4 strategies in %5, %6 of them recorded anew")
                         .arg(QString::fromStdString(study->scenario.model.name),
                              QString::fromStdString(study->scenario.cluster),
                              count_text(static_cast<double>(study->scenario.run.ranks)))
                         .arg(study->strategies.size())
                         .arg(seconds_text(study->seconds))
                         .arg(study->recorded));
  }
}

void MainWindow::open_file(const QString& file) {
  try {
    const ImportedFile imported = import_file(file.toStdString(), session_.document());
    const QString message = QString::fromStdString(imported.message);
    if (imported.kind == ImportedFile::Kind::database) {
      runs_->open(file.toStdString());
      training_->set_database(file.toStdString());
      show_view("runs");
    } else if (imported.kind == ImportedFile::Kind::scenario) {
      session_.open(*imported.document);
    } else if (imported.document) {
      session_.edit(*imported.document, tr("Import %1").arg(file));
    }
    if (!imported.report.rows.empty() && !imported.document) {
      keys_->set_table(imported.report);
      keys_title_->setText(tr("Keys of %1").arg(file));
      show_view("keys");
    }
    say(message);
  } catch (const Error& error) {
    say(error.what());
  }
}

QString MainWindow::command() const {
  return QString::fromStdString(command_line(session_.document()));
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls()) {
    if (url.isLocalFile()) open_file(url.toLocalFile());
  }
}

void MainWindow::closeEvent(QCloseEvent* event) {
  training_->controller().cancel();
  if (!options_.settings.isEmpty()) {
    QSettings settings(options_.settings, QSettings::IniFormat);
    settings.setValue("geometry", saveGeometry());
    settings.setValue("layout", saveState());
    settings.setValue("view", tabs_->currentWidget()->objectName());
    settings.setValue("document", QString::fromStdString(session_.document().text()));
    settings.setValue("source", QString::fromStdString(session_.document().source()));
    settings.setValue("unit", static_cast<int>(byte_unit()));
  }
  QMainWindow::closeEvent(event);
}

bool MainWindow::restore() {
  if (options_.settings.isEmpty()) return false;
  const QSettings settings(options_.settings, QSettings::IniFormat);
  if (!settings.contains("document")) return false;
  set_byte_unit(static_cast<ByteUnit>(settings.value("unit").toInt()));
  try {
    session_.open(Document::parse(settings.value("document").toString().toStdString(),
                                  settings.value("source").toString().toStdString()));
  } catch (const Error&) {
    return false;  // a damaged settings file is as good as none
  }
  restoreGeometry(settings.value("geometry").toByteArray());
  restoreState(settings.value("layout").toByteArray());
  show_view(settings.value("view").toString());
  return true;
}

}  // namespace zl::gui
