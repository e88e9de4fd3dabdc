#include "gui/main_window.h"

#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QScrollArea>
#include <QSettings>
#include <QSplitter>
#include <QStatusBar>
#include <QTableView>
#include <QTimer>
#include <QUrl>
#include <QVBoxLayout>

#include "core/base/error.h"
#include "gui/command_line.h"
#include "gui/import_file.h"
#include "gui/models/table_model.h"
#include "gui/plot/plot.h"
#include "gui/units.h"
#include "gui/views/accuracy_page.h"
#include "gui/views/chart_views.h"
#include "gui/views/compare_page.h"
#include "gui/views/explore_page.h"
#include "gui/views/fit_page.h"
#include "gui/views/mesh_panel.h"
#include "gui/views/notice_bar.h"
#include "gui/views/pages.h"
#include "gui/views/runs_page.h"
#include "gui/views/scenario_dock.h"
#include "gui/views/strategy_view.h"
#include "gui/views/sweep_page.h"
#include "gui/views/trace_views.h"
#include "gui/views/train_files.h"
#include "gui/views/train_page.h"
#include "scenarios/files/defaults.h"

namespace zl::gui {
namespace {

constexpr int kSettledMilliseconds = 100;
// The pages whose charts are of the scenario.
constexpr const char* kOfTheStudy[] = {"overview", "tradeoff", "explore",   "memory",
                                       "time",     "traffic",  "over-time", "timeline"};

}  // namespace

MainWindow::MainWindow(Session& session, const WindowOptions& options, QWidget* parent)
    : QMainWindow(parent), session_(session), options_(options) {
  setObjectName("main");
  setWindowTitle("zerolab");
  setAcceptDrops(true);
  setDockOptions(AnimatedDocks | AllowTabbedDocks | AllowNestedDocks);
  pages_ = new Pages;
  add_views();
  add_docks();
  notices_ = new NoticeBar(session_, *form_);
  auto* middle = new QWidget;
  auto* column = new QVBoxLayout(middle);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(notices_);
  column->addWidget(pages_, 1);
  setCentralWidget(middle);
  status_ = new QLabel;
  status_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  status_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  statusBar()->addWidget(status_, 1);
  build_menus();
  // A file that is dropped on a field is the window's, no text of the field.
  for (QLineEdit* line : findChildren<QLineEdit*>()) line->setAcceptDrops(false);
  follow_runs();
  follow_session();
  resize(1280, 800);
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
  connect(&session_, &Session::study_changed, this, &MainWindow::show_whose_charts);
  connect(&session_, &Session::study_changed, this, &MainWindow::dim_stale);
  connect(&session_, &Session::failed, this, &MainWindow::dim_stale);
  connect(&session_, &Session::document_changed, this, &MainWindow::follow_files);
  connect(training_->files(), &TrainFiles::model_chosen, this,
          [this](const QString& folder) { form_->choose("model", folder); });
  const auto sweep = [this](const QString& key, const QString& list) {
    show_view("sweep");
    sweep_->ask(key, list);
  };
  connect(form_, &ScenarioDock::list_typed, this, sweep);
  connect(&form_->mesh(), &MeshPanel::list_typed, this, sweep);
  connect(&watcher_, &QFileSystemWatcher::fileChanged, this, [this] {
    // Editors write a new file in the place of the old one, which is then watched no more.
    QTimer::singleShot(kSettledMilliseconds, this, [this] {
      follow_files();
      session_.evaluate_again();
    });
  });
}

// Which scenario it is, in the title and in what is exported.
void MainWindow::show_whose_charts() {
  const auto study = session_.study();
  if (!study) return;
  const Scenario& scenario = study->scenario;
  const auto text = [](const std::string& value) { return QString::fromStdString(value); };
  const QString what = tr("%1 on %2").arg(text(scenario.model.name), text(scenario.cluster));
  const QString name = text(scenario.name);
  setWindowTitle(name == what ? what : tr("%1, %2").arg(what, name));
  QString context = tr("%1, %2 ranks, sequence %3")
                        .arg(what)
                        .arg(scenario.run.ranks)
                        .arg(scenario.run.sequence_length);
  if (!study->strategies.empty()) {
    const StrategyStudy& first = study->strategies.front();
    context += tr(", micro-batch %1 x %2, %3")
                   .arg(first.imported.strategy.micro_batch)
                   .arg(first.imported.strategy.gradient_accumulation)
                   .arg(text(first.result.precision));
  }
  for (const char* view : kOfTheStudy) {
    for (Plot* plot : this->view(view)->findChildren<Plot*>()) plot->set_context(context);
  }
}

void MainWindow::dim_stale() {
  const bool stale = !session_.error().isEmpty();
  for (const char* view : kOfTheStudy) {
    for (Plot* plot : this->view(view)->findChildren<Plot*>()) plot->set_stale(stale);
  }
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
    const auto ranks = static_cast<double>(study->scenario.run.ranks);
    const auto devices = static_cast<double>(devices_in_name(study->scenario));
    const bool some = ranks < devices && study->scenario.cluster != "local";
    status_->setText(tr("%1 on %2, %3 · %4 strategies in %5, %6 of them recorded anew")
                         .arg(QString::fromStdString(study->scenario.model.name),
                              QString::fromStdString(study->scenario.cluster),
                              some ? tr("%1 of %2 GPUs").arg(count_text(ranks), count_text(devices))
                                   : tr("%1 ranks").arg(count_text(ranks)))
                         .arg(study->strategies.size())
                         .arg(seconds_text(study->seconds))
                         .arg(study->recorded));
  }
}

QString MainWindow::command() const {
  return QString::fromStdString(command_line(session_.document()));
}

// Escape that nothing else wanted takes the filter away.
void MainWindow::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) return session_.hide({});
  QMainWindow::keyPressEvent(event);
}

// Whether a run under way may end.
bool MainWindow::may_close() {
  if (!training_->controller().running()) return true;
  QMessageBox question(QMessageBox::Question, tr("A run is under way"),
                       tr("%1.\n\nClosing ends it after its step; the steps so far are kept.")
                           .arg(training_->state()),
                       QMessageBox::NoButton, this);
  question.addButton(tr("&Stop it and close"), QMessageBox::AcceptRole);
  QPushButton* stay = question.addButton(tr("&Keep running"), QMessageBox::RejectRole);
  question.setDefaultButton(stay);
  question.setEscapeButton(stay);
  question.exec();
  return question.clickedButton() != stay;
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!may_close()) return event->ignore();
  training_->controller().cancel();
  notices_->calibrator().cancel();
  if (!options_.settings.isEmpty()) {
    QSettings settings(options_.settings, QSettings::IniFormat);
    settings.setValue("geometry", saveGeometry());
    settings.setValue("layout", saveState());
    settings.setValue("view", pages_->current());
    settings.setValue("recent", recent_);
    settings.setValue("document", QString::fromStdString(session_.document().text()));
    settings.setValue("source", QString::fromStdString(session_.document().source()));
    settings.setValue("unit", static_cast<int>(byte_unit()));
    training_->store(settings);
  }
  QMainWindow::closeEvent(event);
}

bool MainWindow::restore() {
  if (options_.settings.isEmpty()) return false;
  const QSettings settings(options_.settings, QSettings::IniFormat);
  if (!settings.contains("document")) return false;
  set_byte_unit(static_cast<ByteUnit>(settings.value("unit").toInt()));
  recent_ = settings.value("recent").toStringList();
  try {
    session_.open(Document::parse(settings.value("document").toString().toStdString(),
                                  settings.value("source").toString().toStdString()));
  } catch (const Error&) {
    return false;  // a damaged settings file is as good as none
  }
  training_->restore(settings);
  restoreGeometry(settings.value("geometry").toByteArray());
  restoreState(settings.value("layout").toByteArray());
  show_view(settings.value("view").toString());
  return true;
}

}  // namespace zl::gui
