#include "gui/views/scenario_dock.h"

#include <QComboBox>
#include <QCompleter>
#include <QFileInfo>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/bytes.h"
#include "gui/theme.h"
#include "gui/units.h"
#include "gui/views/hardware_panel.h"
#include "gui/views/mesh_panel.h"
#include "gui/views/sweep_page.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/model_folder.h"
#include "simulator/json/reading.h"

namespace zl::gui {
namespace {

QStringList names_in(const char* folder) {
  QStringList names;
  for (const std::string& name : catalog_names(folder)) names << QString::fromStdString(name);
  return names;
}

// "local", each GPU alone, one node of it, and larger sizes.
QStringList cluster_choices() {
  QStringList choices{"local"};
  for (const QString& gpu : names_in("clusters")) choices << gpu << "8x" + gpu;
  for (const char* large : {"64xh100", "256xh100", "1024xh100"}) choices << large;
  return choices;
}

}  // namespace

ScenarioDock::ScenarioDock(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* layout = new QVBoxLayout(this);
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->setVerticalSpacing(4);
  layout->addLayout(form);
  add_choice(form, "model", tr("&Model"), names_in("models"),
             tr("A model of the catalogue, a model file, or the folder of a Hugging Face model, "
                "which brings its weights and its tokenizer"));
  add_choice(form, "cluster", tr("&Cluster"), cluster_choices(),
             tr("local, h200, 8xh100, 1024xh100 (N GPUs in nodes of standard size), or a file"));
  add_choice(form, "run.software", tr("Soft&ware"), QStringList{""} + names_in("software"),
             tr("What a GPU that nobody measured runs; empty: torch-fsdp2-compile; zerolab: this "
                "program's own kernels"));
  add_strategies(form);
  add_ranks(form);
  add_line(form, "run.micro_batch", tr("Micro-&batch"), tr("Sequences per rank and micro-batch"));
  add_line(form, "run.gradient_accumulation", tr("&Accumulation"), tr("Micro-batches per step"));
  batch_note_ = new QLabel;
  batch_note_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  batch_note_->setForegroundRole(QPalette::PlaceholderText);
  batch_note_->setToolTip(tr("Micro-batch x accumulation x ranks: what one optimizer step sees"));
  form->addRow(tr("Global batch"), batch_note_);
  add_line(form, "run.sequence_length", tr("Se&quence"), tr("Tokens per sequence"));
  add_choice(form, "run.precision", tr("&Precision"), {"", "fp32", "bf16", "fp16"},
             tr("Empty: what each strategy says"));
  add_line(form, "run.device_memory", tr("Memory bu&dget"),
           tr("Device bytes of a rank such as 16GiB; empty: what the device has"));
  add_line(form, "run.steps", tr("S&teps"), tr("Optimizer steps of a run"));
  add_line(form, "run.seed", tr("Seed"), tr("Of weights, data order and dropout"));
  add_line(form, "run.data", tr("Data"), tr("bible, synthetic, a text file, or a .bin of tokens"));
  add_line(form, "run.eval_data", tr("&Validation"),
           tr("A text or .bin that is not trained on: the loss on it while training"));
  add_line(form, "run.eval_every", tr("…every"),
           tr("Steps between validations, of which the best model is kept; empty: at the end"));
  mesh_ = new MeshPanel(session, this);
  layout->addWidget(mesh_);
  hardware_ = new HardwarePanel(session, this);
  layout->addWidget(hardware_);
  layout->addStretch(1);
  connect(&session, &Session::opened, this, [this] { typed_.clear(); });
  connect(&session, &Session::document_changed, this, &ScenarioDock::show_document);
  connect(&session, &Session::failed, this, &ScenarioDock::show_error);
  connect(&session, &Session::study_changed, this, [this] {
    show_error({});
    show_effective_values();
  });
  show_document();
}

void ScenarioDock::add_field(QFormLayout* form, const QString& key, const QString& label,
                             const QString& hint, QWidget* editor, QLabel* beside) {
  auto* row = new QHBoxLayout;
  row->setSpacing(6);
  row->addWidget(editor, 1);
  if (beside != nullptr) row->addWidget(beside);
  auto* name = new QLabel(label);
  name->setBuddy(editor);
  name->setToolTip(hint);
  form->addRow(name, row);
  editor->setToolTip(hint);
  editor->setAccessibleName(QString(label).remove('&'));
  fields_.push_back({key, editor, name, hint});
}

void ScenarioDock::add_choice(QFormLayout* form, const QString& key, const QString& label,
                              const QStringList& choices, const QString& hint) {
  auto* combo = new QComboBox;
  combo->setEditable(true);
  combo->setInsertPolicy(QComboBox::NoInsert);
  combo->addItems(choices);
  // A list to choose from: completed in line, "llama2" and Enter would mean "llama2-13b".
  combo->completer()->setCompletionMode(QCompleter::PopupCompletion);
  combo->completer()->setFilterMode(Qt::MatchContains);
  combo->setMinimumContentsLength(10);
  combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  add_field(form, key, label, hint, combo);
  const std::size_t index = fields_.size() - 1;
  connect(combo, &QComboBox::activated, this, [this, index] { commit(fields_[index]); });
  connect(combo->lineEdit(), &QLineEdit::editingFinished, this,
          [this, index] { commit(fields_[index]); });
}

void ScenarioDock::add_line(QFormLayout* form, const QString& key, const QString& label,
                            const QString& hint) {
  auto* line = new QLineEdit;
  add_field(form, key, label, hint, line);
  const std::size_t index = fields_.size() - 1;
  connect(line, &QLineEdit::editingFinished, this, [this, index] { commit(fields_[index]); });
}

void ScenarioDock::add_ranks(QFormLayout* form) {
  auto* line = new QLineEdit;
  ranks_note_ = new QLabel;
  ranks_note_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  ranks_note_->setForegroundRole(QPalette::PlaceholderText);
  add_field(
      form, "run.ranks", tr("&Ranks"),
      tr("Data-parallel ranks, one a GPU; empty: all of the cluster. What is typed here stays "
         "when the cluster changes"),
      line, ranks_note_);
  const std::size_t index = fields_.size() - 1;
  connect(line, &QLineEdit::editingFinished, this, [this, index] { commit(fields_[index]); });
}

void ScenarioDock::add_strategies(QFormLayout* form) {
  strategies_ = new QListWidget;
  // As high as its rows where there is room; in a small window it scrolls.
  strategies_->setSizeAdjustPolicy(QAbstractScrollArea::AdjustToContents);
  strategies_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Maximum);
  add_field(form, "strategies", tr("&Strategies"),
            tr("Ticked: simulated. Drop DeepSpeed files on the window for others"), strategies_);
  connect(strategies_, &QListWidget::itemChanged, this, &ScenarioDock::commit_strategies);
}

// What was said for another model or cluster goes with it, unless it was typed here.
Document ScenarioDock::with_defaults(Document next, const QString& key) const {
  QStringList stale;
  if (key == "cluster") stale = {"run.ranks", "run.micro_batch", "run.device_memory"};
  if (key == "model") stale = {"run.micro_batch", "run.sequence_length", "run.weights"};
  if (key == "model" && has_tokenizer(next.get("model"))) stale << "run.tokenizer";
  for (const QString& each : stale) {
    if (!typed_.contains(each)) next = next.with(each.toStdString(), "");
  }
  return next;
}

void ScenarioDock::commit(const Field& field) {
  if (updating_) return;
  QString value;
  if (auto* line = qobject_cast<QLineEdit*>(field.editor)) value = line->text().trimmed();
  if (auto* combo = qobject_cast<QComboBox*>(field.editor)) value = combo->currentText().trimmed();
  if (value == field.editor->property("shown").toString()) return;
  if (value.contains(',') && SweepPage::takes(field.key) && !QFileInfo::exists(value)) {
    show_document();
    Q_EMIT list_typed(field.key, value);
    return;
  }
  choose(field.key, value);
}

void ScenarioDock::choose(const QString& key, const QString& value) {
  if (value.isEmpty()) {
    typed_.remove(key);
  } else {
    typed_.insert(key);
  }
  const Document next = session_.document().with(key.toStdString(), value.toStdString());
  const QString what = value.isEmpty() ? tr("Reset %1").arg(key) : tr("%1 = %2").arg(key, value);
  session_.edit(with_defaults(next, key), what);
}

void ScenarioDock::commit_strategies() {
  if (updating_) return;
  std::vector<std::string> chosen;
  for (int row = 0; row < strategies_->count(); ++row) {
    const QListWidgetItem* item = strategies_->item(row);
    if (item->checkState() != Qt::Checked) continue;
    chosen.push_back(item->data(Qt::UserRole).toString().toStdString());
  }
  session_.edit(session_.document().with_strategies(chosen), tr("Strategies"));
}

QWidget* ScenarioDock::field(const QString& key) const {
  for (const Field& field : fields_) {
    if (field.key == key) return field.editor;
  }
  return nullptr;
}

}  // namespace zl::gui
