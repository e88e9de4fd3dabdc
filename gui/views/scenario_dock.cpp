#include "gui/views/scenario_dock.h"

#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "core/base/bytes.h"
#include "gui/theme.h"
#include "gui/views/hardware_panel.h"
#include "scenarios/files/catalog.h"
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

// What an entry of "strategies" is called: its name, or that of an inline one.
QString label_of(const std::string& entry, std::size_t index) {
  const Json parsed = json_or_null(entry);
  if (!parsed.is_object()) return QString::fromStdString(entry);
  const Json own = parsed.value("x-zerolab", Json::object());
  const Json name = own.is_object() ? own.value("name", Json()) : Json();
  return name.is_string() ? QString::fromStdString(name.get<std::string>())
                          : QObject::tr("strategy-%1").arg(index + 1);
}

}  // namespace

ScenarioDock::ScenarioDock(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* layout = new QVBoxLayout(this);
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->setVerticalSpacing(4);
  layout->addLayout(form);
  add_choice(form, "model", tr("&Model"), names_in("models"),
             tr("A model of the catalogue, a model file or a Hugging Face config.json"));
  add_choice(form, "cluster", tr("&Cluster"), cluster_choices(),
             tr("local, h200, 8xh100, 1024xh100 (N GPUs in nodes of standard size), or a file"));
  add_choice(form, "run.stack", tr("Soft&ware"), QStringList{""} + names_in("stacks"),
             tr("Whose speed a GPU that nobody measured has; empty: this program's own kernels"));
  add_strategies(form);
  add_line(form, "run.ranks", tr("&Ranks"), tr("Data-parallel ranks"));
  add_line(form, "run.micro_batch", tr("Micro-&batch"), tr("Sequences per rank and micro-batch"));
  add_line(form, "run.gradient_accumulation", tr("&Accumulation"), tr("Micro-batches per step"));
  add_line(form, "run.sequence_length", tr("Se&quence"), tr("Tokens per sequence"));
  add_choice(form, "run.precision", tr("&Precision"), {"", "fp32", "bf16", "fp16"},
             tr("Empty: what each strategy says"));
  add_line(form, "run.device_memory", tr("Memory bu&dget"),
           tr("Device bytes of a rank such as 16GiB; empty: what the device has"));
  add_line(form, "run.steps", tr("S&teps"), tr("Optimizer steps of a run"));
  add_line(form, "run.seed", tr("Seed"), tr("Of weights, data order and dropout"));
  add_line(form, "run.data", tr("Data"), tr("bible, synthetic, a text file, or a .bin of tokens"));
  hardware_ = new HardwarePanel(session, this);
  layout->addWidget(hardware_);
  other_error_ = new QLabel;
  other_error_->setWordWrap(true);
  other_error_->hide();
  layout->addWidget(other_error_);
  layout->addStretch(1);
  connect(&session, &Session::document_changed, this, &ScenarioDock::show_document);
  connect(&session, &Session::failed, this, &ScenarioDock::show_error);
  connect(&session, &Session::study_changed, this, [this] {
    show_error({});
    show_effective_values();
  });
  show_document();
}

void ScenarioDock::add_field(QFormLayout* form, const QString& key, const QString& label,
                             QWidget* editor) {
  auto* box = new QWidget;
  auto* stack = new QVBoxLayout(box);
  stack->setContentsMargins(0, 0, 0, 0);
  stack->setSpacing(1);
  stack->addWidget(editor);
  auto* error = new QLabel;
  error->setWordWrap(true);
  error->hide();
  stack->addWidget(error);
  form->addRow(label, box);
  if (auto* buddy = qobject_cast<QLabel*>(form->labelForField(box))) buddy->setBuddy(editor);
  editor->setAccessibleName(QString(label).remove('&'));
  fields_.push_back({key, editor, error});
}

void ScenarioDock::add_choice(QFormLayout* form, const QString& key, const QString& label,
                              const QStringList& choices, const QString& hint) {
  auto* combo = new QComboBox;
  combo->setEditable(true);
  combo->setInsertPolicy(QComboBox::NoInsert);
  combo->addItems(choices);
  combo->setToolTip(hint);
  combo->setMinimumContentsLength(10);
  combo->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  add_field(form, key, label, combo);
  const std::size_t index = fields_.size() - 1;
  connect(combo, &QComboBox::activated, this, [this, index] { commit(fields_[index]); });
  connect(combo->lineEdit(), &QLineEdit::editingFinished, this,
          [this, index] { commit(fields_[index]); });
}

void ScenarioDock::add_line(QFormLayout* form, const QString& key, const QString& label,
                            const QString& hint) {
  auto* line = new QLineEdit;
  line->setToolTip(hint);
  add_field(form, key, label, line);
  const std::size_t index = fields_.size() - 1;
  connect(line, &QLineEdit::editingFinished, this, [this, index] { commit(fields_[index]); });
}

void ScenarioDock::add_strategies(QFormLayout* form) {
  strategies_ = new QListWidget;
  strategies_->setMaximumHeight(132);
  strategies_->setToolTip(
      tr("Catalogue strategies; drop DeepSpeed files on the window for others"));
  add_field(form, "strategies", tr("&Strategies"), strategies_);
  connect(strategies_, &QListWidget::itemChanged, this, &ScenarioDock::commit_strategies);
}

void ScenarioDock::commit(const Field& field) {
  if (updating_) return;
  QString value;
  if (auto* line = qobject_cast<QLineEdit*>(field.editor)) value = line->text().trimmed();
  if (auto* combo = qobject_cast<QComboBox*>(field.editor)) value = combo->currentText().trimmed();
  const std::string path = field.key.toStdString();
  const bool shows_inline = session_.document().is_inline(path);
  if (shows_inline && value == field.editor->property("shown").toString()) return;
  if (!shows_inline && value == QString::fromStdString(session_.document().get(path))) return;
  session_.edit_key(field.key, value);
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

void ScenarioDock::show_document() {
  updating_ = true;
  for (const Field& field : fields_) {
    const std::string path = field.key.toStdString();
    QString value = QString::fromStdString(session_.document().get(path));
    if (session_.document().is_inline(path)) {
      const QString name = QString::fromStdString(session_.document().get(path + ".name"));
      value = name.isEmpty() ? tr("(inline)") : name;
      field.editor->setProperty("shown", value);
    }
    if (auto* line = qobject_cast<QLineEdit*>(field.editor)) line->setText(value);
    if (auto* combo = qobject_cast<QComboBox*>(field.editor)) combo->setCurrentText(value);
  }
  show_strategies();
  updating_ = false;
}

void ScenarioDock::show_strategies() {
  const std::vector<std::string> chosen = session_.document().strategies();
  std::vector<std::string> all = catalog_names("strategies");
  for (const std::string& entry : chosen) {
    if (std::find(all.begin(), all.end(), entry) == all.end()) all.push_back(entry);
  }
  // Without the key a scenario has the five ZeRO strategies; the study then says which.
  const auto is_chosen = [&](const std::string& entry) {
    if (!chosen.empty()) return std::find(chosen.begin(), chosen.end(), entry) != chosen.end();
    const auto study = session_.study();
    return study && study->document == session_.document() && study->find(entry) != nullptr;
  };
  strategies_->clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto* item = new QListWidgetItem(label_of(all[i], i), strategies_);
    item->setData(Qt::UserRole, QString::fromStdString(all[i]));
    item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
    item->setCheckState(is_chosen(all[i]) ? Qt::Checked : Qt::Unchecked);
  }
}

// What the study made of keys that the document leaves open.
void ScenarioDock::show_effective_values() {
  const auto study = session_.study();
  if (!study) return;
  updating_ = true;
  const RunSettings& run = study->scenario.run;
  const auto hint = [&](const char* key, const QString& text) {
    if (auto* line = qobject_cast<QLineEdit*>(field(key))) line->setPlaceholderText(text);
  };
  hint("run.ranks", QString::number(run.ranks));
  hint("run.sequence_length", QString::number(run.sequence_length));
  hint("run.steps", QString::number(run.steps));
  hint("run.seed", QString::number(run.seed));
  hint("run.data", QString::fromStdString(run.data));
  if (!study->strategies.empty()) {
    const Strategy& strategy = study->strategies.front().imported.strategy;
    hint("run.micro_batch", QString::number(strategy.micro_batch));
    hint("run.gradient_accumulation", QString::number(strategy.gradient_accumulation));
  }
  hint("run.device_memory",
       study->budget > 0 ? QString::fromStdString(format_bytes(study->budget)) : tr("unlimited"));
  if (session_.document().strategies().empty()) show_strategies();
  updating_ = false;
}

void ScenarioDock::show_error(const QString& message) {
  // The field whose key the message begins with; "strategy.KEY" belongs to the list.
  const Field* guilty = nullptr;
  for (const Field& field : fields_) {
    field.error->hide();
    field.error->clear();
    field.editor->setStyleSheet({});
    const bool strategy = field.key == "strategies" && message.startsWith("strategy");
    const bool key = message.startsWith(field.key + ":") || message.startsWith(field.key + ".") ||
                     message.startsWith(field.key + " ");
    if (!message.isEmpty() && (strategy || key)) guilty = &field;
  }
  other_error_->setVisible(!message.isEmpty() && guilty == nullptr);
  QLabel* label = guilty == nullptr ? other_error_ : guilty->error;
  label->setText(message);
  label->setVisible(!message.isEmpty());
  const QString color = bad(palette()).name();
  label->setStyleSheet("color: " + color);
  if (guilty != nullptr) {
    const QString type = guilty->editor->metaObject()->className();
    guilty->editor->setStyleSheet(type + " { border: 2px solid " + color + "; }");
  }
}

QString ScenarioDock::error_at(const QString& key) const {
  for (const Field& field : fields_) {
    if (field.key == key) return field.error->text();
  }
  return {};
}

QWidget* ScenarioDock::field(const QString& key) const {
  for (const Field& field : fields_) {
    if (field.key == key) return field.editor;
  }
  return nullptr;
}

}  // namespace zl::gui
