// The menus of the main window: every action has a shortcut.
#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QDialog>
#include <QDockWidget>
#include <QFileDialog>
#include <QMenuBar>
#include <QSaveFile>
#include <QTabWidget>
#include <QTableView>
#include <QVBoxLayout>

#include "core/base/error.h"
#include "gui/export_files.h"
#include "gui/main_window.h"
#include "gui/models/table_model.h"
#include "gui/plot/plot.h"
#include "gui/theme.h"
#include "gui/units.h"
#include "gui/views/chart_page.h"
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
  add(edit, tr("Select &all strategies"), "Ctrl+Shift+A", [this] { session_.select({}); });
  add(edit, tr("Copy strategies as &TSV"), "Ctrl+Shift+T", [this] { strategies_->copy_tsv(); });
  add(edit, tr("Copy strategies as &Markdown"), "Ctrl+Shift+M",
      [this] { strategies_->copy_markdown(); });
  build_view_menu(*menuBar()->addMenu(tr("&View")));
  QMenu& run = *menuBar()->addMenu(tr("&Run"));
  add(run, tr("&Start the selected strategies"), "Ctrl+R", [this] {
    show_view("train");
    training_->start();
  });
  add(run, tr("&Cancel the run"), "Ctrl+.", [this] { training_->cancel(); });
  QMenu& help = *menuBar()->addMenu(tr("&Help"));
  add(help, tr("&Keyboard shortcuts"), "?", [this] { show_shortcuts(); });
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
  add(menu, tr("&Report…"), "Ctrl+Shift+R", [this] {
    save_file(tr("Report of the stored runs"), "report.html", tr("Pages (*.html *.md)"),
              [this](const QString& file) { save_report(runs_->model().path(), file); });
  });
}

void MainWindow::save_file(const QString& title, const QString& name, const QString& filter,
                           const std::function<void(const QString&)>& write) {
  const QString file = QFileDialog::getSaveFileName(this, title, name, filter);
  if (file.isEmpty()) return;
  try {
    write(file);
    say(tr("Wrote %1").arg(file));
  } catch (const Error& error) {
    say(error.what());
  }
}

void MainWindow::build_view_menu(QMenu& menu) {
  for (int i = 0; i < tabs_->count(); ++i) {
    const QString key = i < 9 ? QString("Alt+%1").arg(i + 1) : QString("Alt+Shift+%1").arg(i - 8);
    add(menu, tabs_->tabText(i), key, [this, i] { tabs_->setCurrentIndex(i); });
  }
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
  int number = 0;
  for (const auto& [text, appearance] : appearances) {
    add(*colours, text, QString("Ctrl+Alt+%1").arg(++number),
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
  const QString file =
      QFileDialog::getSaveFileName(this, tr("Save the scenario"), "scenario.json", "*.json");
  if (file.isEmpty()) return;
  QSaveFile out(file);
  const QByteArray text = QByteArray::fromStdString(session_.document().text() + "\n");
  const bool saved =
      out.open(QIODevice::WriteOnly) && out.write(text) == text.size() && out.commit();
  say(saved ? tr("Saved %1").arg(file)
            : tr("%1: cannot be written: %2").arg(file, out.errorString()));
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
  if (ChartPage* chart = current_chart(tabs_->currentWidget())) return chart->export_as();
  say(tr("This page has no chart to export."));
}

void MainWindow::toggle_table() {
  if (ChartPage* chart = current_chart(tabs_->currentWidget())) {
    chart->show_as_table(!chart->shows_table());
  }
}

void MainWindow::show_shortcuts() {
  Table table;
  table.columns = {{"keys", Align::left}, {"what they do", Align::left}};
  for (const QAction* action : findChildren<QAction*>()) {
    if (action->shortcut().isEmpty()) continue;
    table.rows.push_back({action->shortcut().toString().toStdString(),
                          QString(action->text()).remove('&').toStdString()});
  }
  const std::pair<const char*, const char*> fixed[] = {
      {"Tab, Shift+Tab", "next or previous field or chart"},
      {"arrow keys", "in a chart: move over its parts"},
      {"Enter", "in a chart: select the strategy under the cursor"},
      {"P", "memory over time: jump to the peak"},
      {"W S A D", "timeline: zoom in and out, move left and right"},
      {"F", "timeline: zoom to the measured range or the selected operation"},
      {"M, Escape", "timeline: measure the selected operation, forget the measure"},
      {"0", "timeline: everything"},
      {"Backspace, Alt+Left, Alt+Right", "timeline: zoom history"},
      {"/", "timeline: search an operation"}};
  for (const auto& [keys, what] : fixed) {
    table.rows.push_back({std::string(keys), std::string(what)});
  }
  auto* sheet = new QDialog(this);
  sheet->setAttribute(Qt::WA_DeleteOnClose);
  sheet->setWindowTitle(tr("Keyboard shortcuts"));
  auto* model = new TableModel(sheet);
  model->set_table(std::move(table));
  auto* layout = new QVBoxLayout(sheet);
  layout->addWidget(make_table_view(model, tr("Keyboard shortcuts"), sheet));
  sheet->resize(620, 560);
  sheet->show();
}

}  // namespace zl::gui
