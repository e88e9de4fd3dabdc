// The scenario as a form: every edit goes through the session's undo history and simulates again;
// every key that is wrong is marked at its field; the reasons are its tool tip and problems().
// Ownership: refers to the session. Threads: GUI thread.
#pragma once

#include <QSet>
#include <QWidget>
#include <vector>

#include "gui/models/problems.h"
#include "gui/session.h"

class QComboBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QListWidget;

namespace zl::gui {

class HardwarePanel;
class MeshPanel;

class ScenarioDock : public QWidget {
  Q_OBJECT

 public:
  explicit ScenarioDock(Session& session, QWidget* parent = nullptr);

  // What is wrong at a key; empty: nothing.
  QString error_at(const QString& key) const;
  const std::vector<Problem>& problems() const { return problems_; }
  QWidget* field(const QString& key) const;
  // As if it were typed into the key's field.
  void choose(const QString& key, const QString& value);
  MeshPanel& mesh() const { return *mesh_; }
  // "8 of 64 GPUs used" and the batch of all ranks, as they stand in the form.
  QString ranks_note() const;
  QString batch_note() const;

 Q_SIGNALS:
  void problems_changed();
  // A list was typed where one value belongs; the field is as it was.
  void list_typed(const QString& key, const QString& values);

 private:
  struct Field {
    QString key;  // dotted path in the scenario file
    QWidget* editor = nullptr;
    QLabel* label = nullptr;
    QString hint;
  };
  void add_choice(QFormLayout* form, const QString& key, const QString& label,
                  const QStringList& choices, const QString& hint);
  void add_line(QFormLayout* form, const QString& key, const QString& label, const QString& hint);
  void add_field(QFormLayout* form, const QString& key, const QString& label, const QString& hint,
                 QWidget* editor, QLabel* beside = nullptr);
  void add_ranks(QFormLayout* form);
  void add_strategies(QFormLayout* form);
  void commit(const Field& field);
  Document with_defaults(Document next, const QString& key) const;
  void commit_strategies();
  void show_document();
  void show_strategies();
  void list_strategies(const std::vector<std::string>& all);
  void show_effective_values();
  void show_notes();
  void show_error(const QString& message);

  Session& session_;
  std::vector<Field> fields_;
  QListWidget* strategies_ = nullptr;
  std::vector<std::string> listed_;  // in strategies_
  QLabel* ranks_note_ = nullptr;
  QLabel* batch_note_ = nullptr;
  std::vector<Problem> problems_;
  QSet<QString> typed_;  // keys that a person gave since the scenario was opened
  MeshPanel* mesh_ = nullptr;
  HardwarePanel* hardware_ = nullptr;
  bool updating_ = false;
};

}  // namespace zl::gui
