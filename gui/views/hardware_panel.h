// Sliders over the cluster's rates and memory: they only price again, nothing is recorded anew.
// Ownership: refers to the session. Threads: GUI thread.
#pragma once

#include <QGroupBox>
#include <vector>

#include "gui/session.h"

class QLabel;
class QSlider;

namespace zl::gui {

class HardwarePanel : public QGroupBox {
  Q_OBJECT

 public:
  explicit HardwarePanel(Session& session, QWidget* parent = nullptr);

  static constexpr int kKnobs = 6;
  QSlider* slider(int knob) const { return rows_[knob].slider; }
  void reset();

 private:
  struct Row {
    QSlider* slider = nullptr;
    QLabel* value = nullptr;
  };
  void commit(int knob);
  void show_cluster();

  Session& session_;
  std::vector<Row> rows_;
  bool updating_ = false;
};

}  // namespace zl::gui
