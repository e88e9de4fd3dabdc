// The window: scenario panel, pages, strategy table, menus with a shortcut for everything.
// Ownership: owns its views; refers to the session. Threads: GUI thread.
#pragma once

#include <QFileSystemWatcher>
#include <QMainWindow>
#include <filesystem>
#include <functional>

#include "gui/session.h"

class QLabel;
class QMenu;

namespace zl::gui {

class ComparePage;
class NoticeBar;
class Pages;
class RunsPage;
class ScenarioDock;
class StrategyView;
class PlanPage;
class SweepPage;
class TableModel;
class TrainPage;

struct WindowOptions {
  std::filesystem::path database;
  QString settings;  // file that remembers layout and document; empty: nothing is remembered
};

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  MainWindow(Session& session, const WindowOptions& options, QWidget* parent = nullptr);

  // "overview", "memory", ...: the names of --view. False for another.
  bool show_view(const QString& name);
  static QStringList view_names();
  QWidget* view(const QString& name) const;
  StrategyView& strategies() const { return *strategies_; }
  RunsPage& runs() const { return *runs_; }
  TrainPage& training() const { return *training_; }
  SweepPage& sweep() const { return *sweep_; }
  ComparePage& comparison() const { return *comparison_; }
  NoticeBar& notices() const { return *notices_; }
  Pages& pages() const { return *pages_; }

  // A scenario, model, strategy or database; what became of it is in the status bar.
  void open_file(const QString& file);
  QString command() const;  // "Copy as command"
  // Layout and document of the last session; false when there was none.
  bool restore();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct View {
    QString group, name, title, hint;
  };
  void add_view(const View& view, QWidget* widget);
  void add_deciding_views();
  void add_inspecting_views();
  void add_run_views();
  void add_views();
  void add_docks();
  void follow_runs();
  void follow_session();
  void follow_files();
  void show_whose_charts();
  void dim_stale();
  bool may_close();
  void build_menus();
  void build_file_menu(QMenu& menu);
  void build_view_menu(QMenu& menu);
  void build_run_menu(QMenu& menu);
  void build_help_menu(QMenu& menu);
  void build_recent_menu(QMenu& menu);
  void remember(const QString& file);
  void show_glossary();
  void show_about();
  void show_keys();
  void show_shortcuts();
  void say(const QString& message);
  void update_status();
  void export_current();
  // Asks for a file, has `write` write it, and says what became of it.
  void save_file(const QString& title, const QString& name, const QString& filter,
                 const std::function<void(const QString&)>& write);
  QString take_file(const QString& file);
  void export_report(bool stored);
  void export_plan();
  void build_export_menu(QMenu& menu);
  void toggle_table();
  void save_scenario();
  void choose_file(const QString& title, const QString& filter);

  Session& session_;
  WindowOptions options_;
  Pages* pages_;
  NoticeBar* notices_ = nullptr;
  ScenarioDock* form_ = nullptr;
  QFileSystemWatcher watcher_;  // of the files that the scenario names
  QStringList recent_;
  StrategyView* strategies_ = nullptr;
  SweepPage* sweep_ = nullptr;
  PlanPage* plan_ = nullptr;
  RunsPage* runs_ = nullptr;
  TrainPage* training_ = nullptr;
  ComparePage* comparison_ = nullptr;
  TableModel* keys_ = nullptr;
  QLabel* keys_title_ = nullptr;
  QLabel* status_;
};

}  // namespace zl::gui
