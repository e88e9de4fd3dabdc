#include "gui/views/prompt_box.h"

#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

namespace zl::gui {

PromptBox::PromptBox(QWidget* parent) : QWidget(parent), prompter_(new Prompter(this)) {
  model_ = new QLineEdit;
  model_->setPlaceholderText(tr("folder of a model, such as one that was saved here"));
  model_->setAccessibleName(tr("Folder of the model that is tried"));
  auto* browse = new QPushButton(tr("Fol&der…"));
  connect(browse, &QPushButton::clicked, this, &PromptBox::choose_folder);
  prompt_ = new QLineEdit(tr("In the beginning"));
  prompt_->setAccessibleName(tr("Prompt"));
  length_ = new QSpinBox;
  length_->setRange(1, 100'000);
  length_->setValue(64);
  length_->setSuffix(tr(" tokens"));
  length_->setAccessibleName(tr("How many tokens at most"));
  temperature_ = new QDoubleSpinBox;
  temperature_->setRange(0, 5);
  temperature_->setSingleStep(0.1);
  temperature_->setPrefix(tr("temperature "));
  temperature_->setAccessibleName(tr("Temperature"));
  temperature_->setToolTip(tr("0 takes the most likely token; above, tokens are drawn"));
  go_ = new QPushButton(tr("&Try it"));
  connect(go_, &QPushButton::clicked, this, &PromptBox::start_or_stop);
  connect(prompt_, &QLineEdit::returnPressed, this, &PromptBox::start_or_stop);
  auto* where = new QHBoxLayout;
  where->addWidget(new QLabel(tr("Model")));
  where->addWidget(model_, 1);
  where->addWidget(browse);
  where->addWidget(length_);
  where->addWidget(temperature_);
  auto* what = new QHBoxLayout;
  what->addWidget(new QLabel(tr("Prompt")));
  what->addWidget(prompt_, 1);
  what->addWidget(go_);
  text_ = new QPlainTextEdit;
  text_->setReadOnly(true);
  text_->setAccessibleName(tr("What the model says"));
  text_->setPlaceholderText(tr("What the model says next appears here, token by token."));
  state_ = new QLabel;
  state_->setWordWrap(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(where);
  layout->addLayout(what);
  layout->addWidget(text_, 1);
  layout->addWidget(state_);
  connect(prompter_, &Prompter::said, this, [this](const QString& more) {
    text_->moveCursor(QTextCursor::End);
    text_->insertPlainText(more);
    text_->ensureCursorVisible();
    state_->setText(tr("Writing…"));
  });
  connect(prompter_, &Prompter::finished, this, &PromptBox::end);
}

void PromptBox::set_model(const QString& folder) { model_->setText(folder); }

QString PromptBox::text() const { return text_->toPlainText(); }

QString PromptBox::state() const { return state_->text(); }

void PromptBox::choose_folder() {
  const QString folder = QFileDialog::getExistingDirectory(this, tr("Folder of a model"));
  if (!folder.isEmpty()) set_model(folder);
}

void PromptBox::start_or_stop() {
  if (prompter_->running()) return prompter_->cancel();
  const QString folder = model_->text().trimmed();
  if (folder.isEmpty()) {
    return state_->setText(tr("Choose the folder of a model first: save one here, or import one."));
  }
  text_->setPlainText(prompt_->text());
  state_->setText(tr("Reading the weights…"));
  go_->setText(tr("S&top"));
  prompter_->start({folder, prompt_->text(), length_->value(), temperature_->value()});
}

void PromptBox::end(const QString& error, const QString& summary) {
  go_->setText(tr("&Try it"));
  state_->setText(error.isEmpty() ? summary : error);
}

}  // namespace zl::gui
