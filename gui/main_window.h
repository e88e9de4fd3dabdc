// The window: scenario panel, tabs of views, strategy table, menus with a shortcut for everything.
// Ownership: owns its views; refers to the session. Threads: GUI thread.
#pragma once

#include <QMainWindow>

#include "gui/session.h"

class QLabel;
class QTabWidget;

namespace zl::gui {

class StrategyView;

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(Session& session, QWidget* parent = nullptr);

  // "overview", "memory", ...: the names of --view. False for another.
  bool show_view(const QString& name);
  static QStringList view_names();
  StrategyView& strategies() const { return *strategies_; }

 private:
  void add_view(const QString& name, const QString& title, QWidget* view);
  void build_menus();
  void update_status();

  Session& session_;
  QTabWidget* tabs_;
  StrategyView* strategies_;
  QLabel* status_;
};

}  // namespace zl::gui
