// Finds plans in the background, one request after the other, and says what is best so far.
// Ownership: owns the thread. Threads: GUI thread; signals arrive there.
#pragma once

#include <QObject>
#include <memory>

#include "gui/background.h"
#include "scenarios/planner/plan.h"

namespace zl::gui {

class PlanFinder : public QObject {
  Q_OBJECT

 public:
  explicit PlanFinder(QObject* parent = nullptr);

  // Drops a search under way.
  void start(PlanRequest request);
  void cancel() { background_.cancel(); }
  bool running() const { return background_.running(); }

 Q_SIGNALS:
  void progressed(const QString& what, int percent);
  // What is best so far; `is_all`: the search is over.
  void found(const std::shared_ptr<const zl::Plans>& plans, bool is_all);
  void failed(const QString& message);

 private:
  Background::Deliver search(const PlanRequest& request, const Background::Link& link);

  Background background_;
};

}  // namespace zl::gui
