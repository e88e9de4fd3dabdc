// The menus of the main window: every action has a shortcut.
#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenuBar>

#include "core/base/error.h"
#include "core/base/files.h"
#include "gui/export_files.h"
#include "gui/main_window.h"
#include "gui/plot/export.h"
#include "gui/plot/plot.h"
#include "gui/theme.h"
#include "gui/units.h"
#include "gui/views/chart_page.h"
#include "gui/views/notice_bar.h"
#include "gui/views/pages.h"
#include "gui/views/plan_page.h"
#include "gui/views/runs_page.h"
#include "gui/views/strategy_view.h"
#include "gui/views/train_page.h"
#include "scenarios/files/catalog.h"

namespace zl::gui {
namespace {

template <class Call>
QAction* add(QMenu& menu, const QString& text, const QString& shortcut, Call call) {
  QAction* action = menu.addAction(text);
  action->setShortcut(QKeySequence(shortcut));
  QObject::connect(action, &QAction::triggered, &menu, call);
  return action;
}

}  // namespace

void MainWindow::build_menus() {
  build_file_menu(*menuBar()->addMenu(tr("&File")));
  QMenu& edit = *menuBar()->addMenu(tr("&Edit"));
  QAction* undo = session_.undo().createUndoAction(this);
  undo->setShortcut(QKeySequence::Undo);
  QAction* redo = session_.undo().createRedoAction(this);
  redo->setShortcut(QKeySequence("Ctrl+Shift+Z"));
  edit.addAction(undo);
  edit.addAction(redo);
  edit.addSeparator();
  add(edit, tr("Pin or unpin the &baseline"), "Ctrl+B", [this] { strategies_->pin_current(); });
  add(edit, tr("Show &all strategies"), "Ctrl+Shift+A", [this] {
    session_.hide({});
    session_.select({});
  });
  add(edit, tr("Copy strategies as &TSV"), "Ctrl+Shift+T", [this] { strategies_->copy_tsv(); });
  add(edit, tr("Copy strategies as &Markdown"), "Ctrl+Shift+M",
      [this] { strategies_->copy_markdown(); });
  build_view_menu(*menuBar()->addMenu(tr("&View")));
  build_run_menu(*menuBar()->addMenu(tr("&Run")));
  build_help_menu(*menuBar()->addMenu(tr("&Help")));
}

void MainWindow::build_run_menu(QMenu& menu) {
  add(menu, tr("&Start the selected strategies"), "Ctrl+R", [this] {
    show_view("train");
    training_->start();
  });
  add(menu, tr("&Cancel the run"), "Ctrl+.", [this] { training_->cancel(); });
  menu.addSeparator();
  add(menu, tr("Calibrate this &machine"), "Ctrl+Shift+K", [this] { notices_->calibrate(); });
}

void MainWindow::build_help_menu(QMenu& menu) {
  add(menu, tr("&Keyboard shortcuts"), "?", [this] { show_shortcuts(); });
  add(menu, tr("&Glossary"), "F1", [this] { show_glossary(); });
  menu.addSeparator();
  connect(menu.addAction(tr("&About zerolab")), &QAction::triggered, this, &MainWindow::show_about);
}

void MainWindow::build_file_menu(QMenu& menu) {
  add(menu, tr("&Open scenario, model or strategy…"), "Ctrl+O", [this] {
    choose_file(tr("Open"), tr("Scenarios, models, DeepSpeed files (*.json);;All files (*)"));
  });
  QMenu* studies = menu.addMenu(tr("Open a &study"));
  for (const std::string& name : catalog_names("studies")) {
    const QString text = QString::fromStdString(name);
    connect(studies->addAction(text), &QAction::triggered, this,
            [this, name] { session_.open(Document::open(name)); });
  }
  build_recent_menu(menu);
  add(menu, tr("Open &database…"), "Ctrl+D",
      [this] { choose_file(tr("Open database"), tr("Databases (*.db);;All files (*)")); });
  add(menu, tr("&Save the scenario as…"), "Ctrl+S", [this] { save_scenario(); });
  menu.addSeparator();
  add(menu, tr("&Export the chart…"), "Ctrl+E", [this] { export_current(); });
  build_export_menu(menu);
  add(menu, tr("&Copy as command"), "Ctrl+Shift+C", [this] {
    try {
      QApplication::clipboard()->setText(command());
      say(tr("Copied: %1").arg(command().section('\n', 0, 0)));
    } catch (const Error& error) {
      say(error.what());
    }
  });
  menu.addSeparator();
  add(menu, tr("&Quit"), "Ctrl+Q", [this] { close(); });
}

void MainWindow::build_export_menu(QMenu& menu) {
  add(menu, tr("Export &Perfetto trace…"), "Ctrl+Shift+P", [this] {
    const auto study = session_.study();
    if (!study) return say(tr("Nothing is simulated yet."));
    save_file(tr("Export the timelines"), "trace.json", "*.json",
              [&](const QString& file) { save_perfetto(*study, session_.shown(), file); });
  });
  add(menu, tr("Export P&yTorch memory snapshot…"), "Ctrl+Shift+Y", [this] {
    const auto study = session_.study();
    const StrategyStudy* strategy = session_.current();
    if (strategy == nullptr || !strategy->recording) return say(tr("Nothing is simulated yet."));
    const QString name = QString::fromStdString(strategy->name()) + ".pickle";
    save_file(tr("Export the device memory of one strategy"), name, "*.pickle",
              [&](const QString& file) { save_memory_snapshot(*strategy, file); });
  });
  add(menu, tr("&Report of what is shown…"), "Ctrl+Shift+R", [this] { export_report(false); });
  add(menu, tr("Report of the &stored runs…"), "Ctrl+Shift+D", [this] { export_report(true); });
}

void MainWindow::export_plan() {
  save_file(tr("Report of the plan"), "plan.html", tr("Pages (*.html *.md)"),
            [this](const QString& file) { plan_->save_report(file); });
}

void MainWindow::export_report(bool stored) {
  if (!stored && pages_->current() == "plan" && plan_->has_plans()) return export_plan();
  const auto study = session_.study();
  if (!stored && !study) return say(tr("Nothing is simulated yet."));
  const QString title = stored ? tr("Report of the stored runs") : tr("Report of what is shown");
  save_file(title, "report.html", tr("Pages (*.html *.md)"), [&](const QString& file) {
    // On the Runs page of those that are selected there.
    const bool chosen = pages_->current() == "runs";
    const auto runs = chosen ? runs_->selected() : std::vector<std::int64_t>{};
    if (stored) return save_report(runs_->model().path(), file, runs);
    save_study_report(*study, session_.shown(), file);
  });
}

void MainWindow::save_file(const QString& title, const QString& name, const QString& filter,
                           const std::function<void(const QString&)>& write) {
  const QString chosen = QFileDialog::getSaveFileName(this, title, name, filter);
  if (chosen.isEmpty()) return;
  const QString file = with_suffix(chosen, "." + QFileInfo(name).suffix());
  try {
    write(file);
    say(tr("Wrote %1").arg(file));
  } catch (const Error& error) {
    say(error.what());
  }
}

void MainWindow::build_view_menu(QMenu& menu) {
  int number = 0;
  QString group;
  for (const QString& name : pages_->names()) {
    if (pages_->group(name) != group) menu.addSection(group = pages_->group(name));
    ++number;
    const QString key =
        number <= 9 ? QString("Alt+%1").arg(number) : QString("Alt+Shift+%1").arg(number - 9);
    add(menu, pages_->title(name), key, [this, name] { show_view(name); });
  }
  menu.addSeparator();
  add(menu, tr("&Next page"), "Ctrl+PgDown", [this] { pages_->step(1); });
  add(menu, tr("P&revious page"), "Ctrl+PgUp", [this] { pages_->step(-1); });
  menu.addSeparator();
  add(menu, tr("Show the chart as a &table"), "Ctrl+T", [this] { toggle_table(); });
  add(menu, tr("GiB or G&B"), "Ctrl+U", [this] {
    set_byte_unit(byte_unit() == ByteUnit::binary ? ByteUnit::decimal : ByteUnit::binary);
    session_.notify_views();
  });
  QMenu* colours = menu.addMenu(tr("&Colours"));
  const std::pair<QString, Appearance> appearances[] = {{tr("&System"), Appearance::system},
                                                        {tr("&Light"), Appearance::light},
                                                        {tr("&Dark"), Appearance::dark}};
  int which = 0;
  for (const auto& [text, appearance] : appearances) {
    add(*colours, text, QString("Ctrl+Alt+%1").arg(++which),
        [appearance = appearance] { apply_appearance(appearance); });
  }
  menu.addSeparator();
  int function_key = 9;
  for (QDockWidget* dock : findChildren<QDockWidget*>()) {
    QAction* toggle = dock->toggleViewAction();
    toggle->setShortcut(QKeySequence(QString("F%1").arg(function_key++)));
    menu.addAction(toggle);
  }
}

void MainWindow::choose_file(const QString& title, const QString& filter) {
  const QString file = QFileDialog::getOpenFileName(this, title, {}, filter);
  if (!file.isEmpty()) open_file(file);
}

void MainWindow::save_scenario() {
  save_file(tr("Save the scenario"), "scenario.json", "*.json", [this](const QString& file) {
    AtomicFile out(file.toStdString());
    out.write(session_.document().text() + "\n");
    out.commit();
    remember(file);
  });
}

// The chart with the focus, else the first of the page.
static ChartPage* current_chart(QWidget* page) {
  for (QWidget* widget = QApplication::focusWidget(); widget; widget = widget->parentWidget()) {
    if (auto* chart = qobject_cast<ChartPage*>(widget)) return chart;
  }
  if (auto* chart = qobject_cast<ChartPage*>(page)) return chart;
  return page->findChild<ChartPage*>();
}

void MainWindow::export_current() {
  if (ChartPage* chart = current_chart(pages_->page(pages_->current()))) return chart->export_as();
  say(tr("This page has no chart to export."));
}

void MainWindow::toggle_table() {
  if (ChartPage* chart = current_chart(pages_->page(pages_->current()))) {
    chart->show_as_table(!chart->shows_table());
  }
}

}  // namespace zl::gui
