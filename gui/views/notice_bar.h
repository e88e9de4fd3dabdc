// What concerns every page, over all of them: that this machine is not calibrated, with the button
// that calibrates it, and what is wrong with the scenario while the pages show the last one that
// was right.
// Ownership: refers to session and scenario panel. Threads: GUI thread.
#pragma once

#include <QElapsedTimer>
#include <QFrame>

#include "gui/calibrator.h"
#include "gui/session.h"

class QLabel;
class QPushButton;

namespace zl::gui {

class ScenarioDock;

class NoticeBar : public QWidget {
  Q_OBJECT

 public:
  NoticeBar(Session& session, const ScenarioDock& form, QWidget* parent = nullptr);

  Calibrator& calibrator() { return *calibrator_; }
  // As they are shown; empty: hidden.
  QString calibration_text() const;
  QString problem_text() const;
  void calibrate();

 private:
  struct Line {
    QFrame* frame = nullptr;
    QLabel* text = nullptr;
    QPushButton* button = nullptr;
  };
  Line make_line(const QString& button);
  void show_line(const Line& line, const QString& text, const QColor& color);
  void show_problems();
  void show_calibration();
  QString left_text(int done, int total) const;  // "; about 40 s left"

  Session& session_;
  const ScenarioDock& form_;
  Calibrator* calibrator_;
  Line problems_, calibration_;
  QElapsedTimer since_;  // the start of a calibration
  QString progress_;     // of a calibration under way, or why the last one ended
};

}  // namespace zl::gui
