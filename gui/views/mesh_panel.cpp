#include "gui/views/mesh_panel.h"

#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <algorithm>

#include "core/base/error.h"
#include "core/pipeline/pipeline.h"
#include "gui/theme.h"
#include "gui/views/sweep_page.h"
#include "scenarios/planner/variation.h"

namespace zl::gui {
namespace {

// In the order of kMeshKeys.
struct MeshField {
  const char* label;
  const char* hint;
};
constexpr std::array<MeshField, kMeshKeys.size()> kFields{{
    {"Tensor", "Ranks that share every layer; within a node"},
    {"Sequence parallel", "Norms and dropout of a tensor group on a part of the tokens each"},
    {"Tensor overlap", "What a tensor group exchanges in backward travels beside products"},
    {"Pipeline", "Ranks that have the layers one after the other"},
    {"Schedule", "In which order they take micro-batches forward and backward"},
    {"Virtual stages", "Parts of the model on each rank of a pipeline; zb-v and dualpipe-v: 2"},
    {"Layers per stage", "Of each stage such as 7,8,8,9; or even, units, parameters, cost"},
    {"Replicate", "Copies of the shard groups: ZeRO's shards lie within a copy"},
}};

std::vector<std::string> entries_of(const Session& session) {
  const std::vector<std::string> entries = session.document().strategies();
  return entries.empty() && session.study() ? listed_strategies(*session.study()) : entries;
}

QString text_of(const QWidget* editor) {
  if (const auto* combo = qobject_cast<const QComboBox*>(editor)) {
    return combo->currentText().trimmed();
  }
  return static_cast<const QLineEdit*>(editor)->text().trimmed();
}

}  // namespace

MeshPanel::MeshPanel(Session& session, QWidget* parent) : QGroupBox(parent), session_(session) {
  auto* grid = new QGridLayout(this);
  grid->setVerticalSpacing(2);
  for (std::size_t i = 0; i < kMeshKeys.size(); ++i) {
    Row& row = rows_[i];
    row.hint = tr(kFields[i].hint);
    row.editor = make_editor(kMeshKeys[i]);
    row.editor->setAccessibleName(tr(kFields[i].label));
    row.label = new QLabel(tr(kFields[i].label));
    row.label->setBuddy(row.editor);
    grid->addWidget(row.label, static_cast<int>(i), 0);
    grid->addWidget(row.editor, static_cast<int>(i), 1);
  }
  connect(&session, &Session::document_changed, this, &MeshPanel::show_mesh);
  connect(&session, &Session::selection_changed, this, &MeshPanel::choose_strategy);
  connect(&session, &Session::filter_changed, this, &MeshPanel::choose_strategy);
  connect(&session, &Session::failed, this, &MeshPanel::show_error);
  connect(&session, &Session::study_changed, this, [this] {
    show_error({});
    choose_strategy();
  });
  choose_strategy();
}

QWidget* MeshPanel::make_editor(const char* key) {
  const bool is_flag =
      key == std::string_view("sequence_parallel") || key == std::string_view("tensor_overlap");
  if (!is_flag && key != std::string_view("schedule")) {
    auto* line = new QLineEdit;
    connect(line, &QLineEdit::editingFinished, this, &MeshPanel::commit);
    return line;
  }
  auto* combo = new QComboBox;
  combo->addItem({});
  if (is_flag) combo->addItems({"true", "false"});
  for (int kind = 0; kind < kPipelineKinds && !is_flag; ++kind) {
    combo->addItem(QString::fromUtf8(name_of(static_cast<PipelineKind>(kind))));
  }
  connect(combo, &QComboBox::activated, this, &MeshPanel::commit);
  return combo;
}

QWidget* MeshPanel::field(const QString& key) const {
  const auto found = std::ranges::find(kMeshKeys, key.toStdString());
  return rows_[static_cast<std::size_t>(found - kMeshKeys.begin())].editor;
}

QString MeshPanel::error_at(const QString& key) const {
  const auto found = std::ranges::find(kMeshKeys, key.toStdString());
  return rows_[static_cast<std::size_t>(found - kMeshKeys.begin())].error;
}

MeshTexts MeshPanel::texts() const {
  MeshTexts texts;
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i] = text_of(rows_[i].editor).toStdString();
  return texts;
}

// While a mesh is wrong the study is of the document before: the strategy stays the one in hand.
void MeshPanel::choose_strategy() {
  const StrategyStudy* current = session_.current();
  if (current != nullptr && session_.error().isEmpty()) {
    const QString name = QString::fromStdString(current->name());
    const bool known =
        entry_of(*session_.study(), session_.document(), strategy_.toStdString()) >= 0;
    const bool hidden = session_.hidden().contains(strategy_);
    if (strategy_.isEmpty() || !known || hidden || !session_.selection().isEmpty()) {
      strategy_ = name;
    }
  }
  show_mesh();
}

void MeshPanel::show_mesh() {
  const auto study = session_.study();
  const int entry = study ? entry_of(*study, session_.document(), strategy_.toStdString()) : -1;
  setEnabled(entry >= 0);
  // A long name would make the whole form as wide.
  const QString title = strategy_.isEmpty() ? tr("Mesh") : tr("Mesh of %1").arg(strategy_);
  const int room = layout()->minimumSize().width();
  setTitle(fontMetrics().elidedText(title, Qt::ElideMiddle, room));
  setToolTip(title);
  if (entry < 0) return;
  updating_ = true;
  const MeshTexts texts = mesh_of_entry(entries_of(session_).at(static_cast<std::size_t>(entry)));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const QString text = QString::fromStdString(texts[i]);
    if (auto* combo = qobject_cast<QComboBox*>(rows_[i].editor)) combo->setCurrentText(text);
    auto* line = qobject_cast<QLineEdit*>(rows_[i].editor);
    if (line != nullptr && line->text() != text) line->setText(text);
  }
  updating_ = false;
}

// Layers of stages are a list themselves.
bool MeshPanel::asks_for_list() {
  for (std::size_t i = 0; i < kMeshKeys.size(); ++i) {
    const QString values = text_of(rows_[i].editor), key = kMeshKeys[i];
    if (!values.contains(',') || !SweepPage::takes(key)) continue;
    show_mesh();
    Q_EMIT list_typed(key, values);
    return true;
  }
  return false;
}

void MeshPanel::commit() {
  const auto study = session_.study();
  if (updating_ || !study) return;
  const int entry = entry_of(*study, session_.document(), strategy_.toStdString());
  if (entry < 0) return;
  const auto at = static_cast<std::size_t>(entry);
  if (asks_for_list()) return;
  if (texts() == mesh_of_entry(entries_of(session_).at(at))) return;
  try {
    const Document next = with_mesh(*study, session_.document(), entry, texts());
    const QString before = strategy_;
    strategy_ = QString::fromStdString(name_of_entry(next.strategies().at(at)));
    session_.edit(next, tr("Mesh of %1").arg(before));
  } catch (const Error& error) {
    show_error(error.what());
  }
}

// Where a message names no key of the mesh, no field is marked.
void MeshPanel::show_error(const QString& message) {
  const QString color = bad(palette()).name();
  for (std::size_t i = 0; i < kMeshKeys.size(); ++i) {
    Row& row = rows_[i];
    const QString key = QString("parallel.") + kMeshKeys[i];
    row.error = message.contains(key + ":") || message.contains(key + " ") ? message : QString();
    const QString type = row.editor->metaObject()->className();
    const bool wrong = !row.error.isEmpty();
    row.editor->setToolTip(wrong ? row.error : row.hint);
    row.label->setToolTip(row.editor->toolTip());
    set_style(*row.editor, wrong ? type + " { border: 2px solid " + color + "; }" : QString());
    set_style(*row.label, wrong ? "color: " + color : QString());
  }
}

}  // namespace zl::gui
