// Tries a model: a prompt, and what the model says next.
// Ownership: owns its prompter. Threads: GUI thread.
#pragma once

#include <QWidget>

#include "gui/prompter.h"

class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QSpinBox;

namespace zl::gui {

class PromptBox : public QWidget {
  Q_OBJECT

 public:
  explicit PromptBox(QWidget* parent = nullptr);

  // The folder of the model that is tried.
  void set_model(const QString& folder);
  QLineEdit* model() const { return model_; }
  QLineEdit* prompt() const { return prompt_; }
  QSpinBox* length() const { return length_; }
  QPushButton* go() const { return go_; }
  QString text() const;   // the prompt and what followed
  QString state() const;  // what is under way, or how it ended
  Prompter& prompter() { return *prompter_; }

 private:
  void start_or_stop();
  void end(const QString& error, const QString& summary);
  void choose_folder();

  Prompter* prompter_;
  QLineEdit* model_ = nullptr;
  QLineEdit* prompt_ = nullptr;
  QSpinBox* length_ = nullptr;
  QDoubleSpinBox* temperature_ = nullptr;
  QPushButton* go_ = nullptr;
  QPlainTextEdit* text_ = nullptr;
  QLabel* state_ = nullptr;
};

}  // namespace zl::gui
