#include "gui/views/train_files.h"

#include <QCheckBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QIntValidator>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

namespace zl::gui {
namespace {

constexpr int kMostSteps = 1'000'000;

// A line for a folder and, after it in the bar, the button that chooses one.
QLineEdit* add_folder(QHBoxLayout* bar, const QString& label, const QString& button,
                      const QString& name) {
  auto* line = new QLineEdit;
  line->setAccessibleName(name);
  auto* browse = new QPushButton(button);
  QObject::connect(browse, &QPushButton::clicked, line, [line, name] {
    const QString folder = QFileDialog::getExistingDirectory(line, name);
    if (!folder.isEmpty()) line->setText(folder);
  });
  bar->addWidget(new QLabel(label));
  bar->addWidget(line, 1);
  bar->addWidget(browse);
  return line;
}

}  // namespace

// One row of it all is wider than a small window.
TrainFiles::TrainFiles(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* bars = new QVBoxLayout(this);
  bars->setContentsMargins(0, 0, 0, 0);
  bars->addLayout(make_material_bar());
  bars->addLayout(make_models_bar());
  bars->addLayout(make_checkpoint_bar());
}

QHBoxLayout* TrainFiles::make_material_bar() {
  auto* bar = new QHBoxLayout;
  const auto add = [&](const QString& text, const QString& hint, auto choose) {
    auto* button = new QPushButton(text);
    button->setToolTip(hint);
    connect(button, &QPushButton::clicked, this, choose);
    bar->addWidget(button);
  };
  add(tr("&Model folder…"), tr("A Hugging Face model to start from: weights and tokenizer"),
      [this] { use_model(QFileDialog::getExistingDirectory(this, tr("Folder of a model"))); });
  add(tr("&Data…"), tr("A text, or a .bin of tokens, to train on"),
      [this] { use_data(QFileDialog::getOpenFileName(this, tr("What to train on"))); });
  add(tr("&Validation data…"), tr("A text that is not trained on, to judge the model by"),
      [this] { use_validation(QFileDialog::getOpenFileName(this, tr("What to judge by"))); });
  bar->addStretch(1);
  return bar;
}

QHBoxLayout* TrainFiles::make_models_bar() {
  auto* bar = new QHBoxLayout;
  models_ = add_folder(bar, tr("Save to"), tr("Fo&lder…"), tr("Folder for trained models"));
  models_->setPlaceholderText(tr("no folder: trained models are not kept"));
  models_->setToolTip(
      tr("Gets the trained model as transformers loads it: the best one by the validation data, "
         "else the last; of several strategies each has a folder in it"));
  return bar;
}

QHBoxLayout* TrainFiles::make_checkpoint_bar() {
  auto* bar = new QHBoxLayout;
  folder_ = add_folder(bar, tr("Checkpoints"), tr("&Folder…"), tr("Folder of the checkpoints"));
  folder_->setPlaceholderText(tr("no folder: no checkpoints"));
  folder_->setToolTip(
      tr("Gets a folder per strategy: weights and optimizer state, to resume from"));
  every_ = new QLineEdit;
  every_->setValidator(new QIntValidator(1, kMostSteps, every_));
  every_->setPlaceholderText(tr("the end"));
  every_->setAccessibleName(tr("Steps between checkpoints"));
  every_->setToolTip(tr("Steps between checkpoints; empty: only after the last one"));
  every_->setMaximumWidth(every_->fontMetrics().horizontalAdvance("0000000000"));
  resume_ = new QCheckBox(tr("res&ume"));
  resume_->setToolTip(tr("Goes on from the newest checkpoint, where there is one"));
  bar->addWidget(new QLabel(tr("every")));
  bar->addWidget(every_);
  bar->addWidget(resume_);
  return bar;
}

void TrainFiles::use_model(const QString& folder) {
  if (!folder.isEmpty()) Q_EMIT model_chosen(folder);
}

void TrainFiles::use_data(const QString& file) {
  if (!file.isEmpty()) session_.edit_key("run.data", file);
}

void TrainFiles::use_validation(const QString& file) {
  if (!file.isEmpty()) session_.edit_key("run.eval_data", file);
}

void TrainFiles::set_models(const QString& folder) { models_->setText(folder); }

void TrainFiles::set_checkpoint(const QString& folder, std::int64_t every, bool resume) {
  folder_->setText(folder);
  every_->setText(every > 0 ? QString::number(every) : QString());
  resume_->setChecked(resume);
}

KeptFiles TrainFiles::kept() const {
  KeptFiles files;
  files.models = models_->text().trimmed().toStdString();
  files.checkpoint.folder = folder_->text().trimmed().toStdString();
  files.checkpoint.every = every_->text().toLongLong();
  files.checkpoint.resume = resume_->isChecked();
  return files;
}

}  // namespace zl::gui
