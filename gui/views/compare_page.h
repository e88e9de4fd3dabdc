// Compare A and B: strategies of the study or stored runs, with their configurations, metrics and
// memory side by side.
// Ownership: owns one hidden session per side, which records stored runs anew for their memory over
// time. Threads: GUI thread.
#pragma once

#include <QWidget>
#include <array>
#include <optional>

#include "gui/models/run_model.h"
#include "gui/session.h"

class QComboBox;
class QLabel;

namespace zl::gui {

class LinePlot;
class TableModel;

class ComparePage : public QWidget {
  Q_OBJECT

 public:
  ComparePage(Session& session, RunModel& runs, QWidget* parent = nullptr);

  void compare_strategies(const QString& a, const QString& b);
  void compare_runs(qint64 a, qint64 b);
  TableModel* configuration() const { return configuration_; }
  TableModel* metrics() const { return metrics_; }
  TableModel* contributors() const { return contributors_; }
  LinePlot* memory() const { return memory_; }
  QString ratio_text() const;  // of two step times, with its bar; empty: none is known

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  struct Side {
    QComboBox* choice = nullptr;
    Session* session = nullptr;       // evaluates the side alone
    std::optional<RunResult> result;  // of a stored run; else the study's
    QString label;
  };
  void list_subjects();
  int index_apart(int index) const;
  void choose(Side& side);
  void choose_data(Side& side, const QVariant& subject);
  void show_message(const QString& message);
  void show_comparison();
  void show_memory();

  Session& session_;
  RunModel& runs_;
  std::array<Side, 2> sides_;
  QLabel* message_;
  QLabel* ratio_;
  TableModel* configuration_;
  TableModel* metrics_;
  TableModel* contributors_;
  LinePlot* memory_;
  bool stale_ = true;  // nothing is evaluated while the page is hidden
};

}  // namespace zl::gui
