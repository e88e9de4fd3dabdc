// What a real run starts from and what it leaves: model, texts, the trained model, checkpoints.
// Ownership: refers to the session. Threads: GUI thread.
#pragma once

#include <QWidget>

#include "gui/run_controller.h"
#include "gui/session.h"

class QCheckBox;
class QHBoxLayout;
class QLineEdit;

namespace zl::gui {

class TrainFiles : public QWidget {
  Q_OBJECT

 public:
  explicit TrainFiles(Session& session, QWidget* parent = nullptr);

  // What the scenario trains: the folder of a model with its weights, and files of text.
  void use_model(const QString& folder);
  void use_data(const QString& file);
  void use_validation(const QString& file);
  // Where real runs leave their models; empty: nowhere.
  void set_models(const QString& folder);
  // Where they keep checkpoints; empty: nowhere. `every` 0: after the last step.
  void set_checkpoint(const QString& folder, std::int64_t every, bool resume);
  KeptFiles kept() const;

 Q_SIGNALS:
  void model_chosen(const QString& folder);

 private:
  QHBoxLayout* make_material_bar();
  QHBoxLayout* make_models_bar();
  QHBoxLayout* make_checkpoint_bar();

  Session& session_;
  QLineEdit *models_ = nullptr, *folder_ = nullptr, *every_ = nullptr;
  QCheckBox* resume_ = nullptr;
};

}  // namespace zl::gui
