// What the form of the scenario shows: the document, what the study made of it, what is wrong.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/bytes.h"
#include "gui/theme.h"
#include "gui/units.h"
#include "gui/views/scenario_dock.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/defaults.h"
#include "simulator/json/reading.h"

namespace zl::gui {
namespace {

// What an entry of "strategies" is called: its name, or that of an inline one.
QString label_of(const std::string& entry, std::size_t index) {
  const Json parsed = json_or_null(entry);
  if (!parsed.is_object()) return QString::fromStdString(entry);
  const Json own = parsed.value("x-zerolab", Json::object());
  const Json name = own.is_object() ? own.value("name", Json()) : Json();
  return name.is_string() ? QString::fromStdString(name.get<std::string>())
                          : QObject::tr("strategy-%1").arg(index + 1);
}

// The ZeRO family first: that is what most come for.
std::vector<std::string> plain_first(std::vector<std::string> names) {
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("zero-") && !name.starts_with("zero-one");
  });
  return names;
}

// What the catalogue says about a strategy; of a file, where it is.
QString comment_of(const std::string& entry) {
  if (!catalog_has("strategies", entry)) {
    return entry.starts_with('{') ? QString() : QString::fromStdString(entry);
  }
  const Json json = parse_json(catalog_text("strategies", entry), entry);
  return QString::fromStdString(json.value("x-comment", ""));
}

}  // namespace

void ScenarioDock::show_document() {
  updating_ = true;
  for (const Field& field : fields_) {
    const std::string path = field.key.toStdString();
    QString value = QString::fromStdString(session_.document().get(path));
    if (session_.document().is_inline(path)) {
      const QString name = QString::fromStdString(session_.document().get(path + ".name"));
      value = name.isEmpty() ? tr("(inline)") : name;
    }
    // As stored runs say "what the device has".
    if (field.key == "run.device_memory" && value == "0") value.clear();
    field.editor->setProperty("shown", value);
    auto* line = qobject_cast<QLineEdit*>(field.editor);
    if (line != nullptr && line->text() != value) line->setText(value);
    auto* combo = qobject_cast<QComboBox*>(field.editor);
    if (combo != nullptr && combo->currentText() != value) combo->setCurrentText(value);
  }
  show_strategies();
  updating_ = false;
}

void ScenarioDock::show_strategies() {
  const std::vector<std::string> chosen = session_.document().strategies();
  std::vector<std::string> all = plain_first(catalog_names("strategies"));
  for (const std::string& entry : chosen) {
    if (std::find(all.begin(), all.end(), entry) == all.end()) all.push_back(entry);
  }
  // Without the key a scenario has the five ZeRO strategies; the study then says which.
  const auto is_chosen = [&](const std::string& entry) {
    if (!chosen.empty()) return std::find(chosen.begin(), chosen.end(), entry) != chosen.end();
    const auto study = session_.study();
    return study && study->document == session_.document() && study->find(entry) != nullptr;
  };
  if (all != listed_) list_strategies(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    QListWidgetItem* item = strategies_->item(static_cast<int>(i));
    const Qt::CheckState state = is_chosen(all[i]) ? Qt::Checked : Qt::Unchecked;
    if (item->checkState() != state) item->setCheckState(state);
  }
}

void ScenarioDock::list_strategies(const std::vector<std::string>& all) {
  listed_ = all;
  strategies_->clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto* item = new QListWidgetItem(label_of(all[i], i), strategies_);
    item->setData(Qt::UserRole, QString::fromStdString(all[i]));
    item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
    item->setCheckState(Qt::Unchecked);
    item->setToolTip(comment_of(all[i]));
  }
  constexpr int kLeastRows = 5;
  const int row = strategies_->sizeHintForRow(0), frame = 2 * strategies_->frameWidth() + 2;
  strategies_->setMinimumHeight(kLeastRows * row + frame);
  strategies_->setMaximumHeight(strategies_->count() * row + frame);
}

// What the study made of keys that the document leaves open.
void ScenarioDock::show_effective_values() {
  const auto study = session_.study();
  if (!study) return;
  updating_ = true;
  const RunSettings& run = study->scenario.run;
  const auto hint = [&](const char* key, const QString& text) {
    auto* combo = qobject_cast<QComboBox*>(field(key));
    auto* line = combo == nullptr ? qobject_cast<QLineEdit*>(field(key)) : combo->lineEdit();
    if (line != nullptr) line->setPlaceholderText(text);
  };
  const std::string software = scenario_software(study->scenario);
  hint("run.software", QString::fromStdString(software.empty() ? kOwnSoftware : software));
  hint("run.ranks", QString::number(run.ranks));
  hint("run.sequence_length", QString::number(run.sequence_length));
  hint("run.steps", QString::number(run.steps));
  hint("run.seed", QString::number(run.seed));
  hint("run.data", QString::fromStdString(run.data));
  hint("run.eval_data", tr("none"));
  hint("run.eval_every", tr("the end"));
  if (!study->strategies.empty()) {
    const Strategy& strategy = study->strategies.front().imported.strategy;
    hint("run.precision", QString::fromStdString(study->strategies.front().result.precision));
    hint("run.micro_batch", QString::number(strategy.micro_batch));
    hint("run.gradient_accumulation", QString::number(strategy.gradient_accumulation));
  }
  hint("run.device_memory",
       study->budget > 0 ? QString::fromStdString(format_bytes(study->budget)) : tr("unlimited"));
  if (session_.document().strategies().empty()) show_strategies();
  show_notes();
  updating_ = false;
}

void ScenarioDock::show_notes() {
  const Study& study = *session_.study();
  const std::int64_t ranks = study.scenario.run.ranks;
  const std::int64_t devices = std::max(ranks, devices_in_name(study.scenario));
  const bool some = study.scenario.cluster != "local" && ranks < devices;
  ranks_note_->setText(study.scenario.cluster == "local" ? QString()
                       : some ? tr("%1 of %2 GPUs used").arg(ranks).arg(devices)
                              : tr("all %1 GPUs").arg(devices));
  set_style(*ranks_note_, some ? "color: " + warning(palette()).name() : QString());
  std::set<std::int64_t> tokens;
  for (const StrategyStudy& each : study.strategies) {
    tokens.insert(tokens_per_step(study.scenario, each.imported.strategy));
  }
  if (tokens.empty()) return batch_note_->clear();
  const auto text = [](std::int64_t count) { return count_text(static_cast<double>(count)); };
  const std::int64_t length = std::max<std::int64_t>(1, study.scenario.run.sequence_length);
  batch_note_->setText(
      tokens.size() > 1
          ? tr("%1 to %2 tokens").arg(text(*tokens.begin()), text(*tokens.rbegin()))
          : tr("%1 tokens (%2 seq.)").arg(text(*tokens.begin()), text(*tokens.begin() / length)));
}

// Nothing moves: a field that shifted would take the next click.
void ScenarioDock::show_error(const QString& message) {
  std::vector<QString> keys;
  for (const Field& field : fields_) keys.push_back(field.key);
  problems_ = problems_of(session_.document(), message, keys);
  const QString color = bad(palette()).name();
  for (const Field& field : fields_) {
    const QString error = error_at(field.key);
    const QString type = field.editor->metaObject()->className();
    field.editor->setToolTip(error.isEmpty() ? field.hint : error);
    set_style(*field.editor,
              error.isEmpty() ? QString() : type + " { border: 2px solid " + color + "; }");
    set_style(*field.label, error.isEmpty() ? QString() : "color: " + color);
  }
  Q_EMIT problems_changed();
}

QString ScenarioDock::error_at(const QString& key) const {
  for (const Problem& each : problems_) {
    if (each.key == key) return each.message;
  }
  return {};
}

QString ScenarioDock::ranks_note() const { return ranks_note_->text(); }
QString ScenarioDock::batch_note() const { return batch_note_->text(); }

}  // namespace zl::gui
