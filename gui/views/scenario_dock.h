// The scenario as a form: every edit goes through the session's undo history and simulates again;
// a key that is wrong is marked at its field with the reason.
// Ownership: refers to the session. Threads: GUI thread.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/session.h"

class QComboBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QListWidget;

namespace zl::gui {

class HardwarePanel;

class ScenarioDock : public QWidget {
  Q_OBJECT

 public:
  explicit ScenarioDock(Session& session, QWidget* parent = nullptr);

  // The label under the field of a key, for tests: empty when the key is fine.
  QString error_at(const QString& key) const;
  QWidget* field(const QString& key) const;

 private:
  struct Field {
    QString key;  // dotted path in the scenario file
    QWidget* editor = nullptr;
    QLabel* error = nullptr;
  };
  void add_choice(QFormLayout* form, const QString& key, const QString& label,
                  const QStringList& choices, const QString& hint);
  void add_line(QFormLayout* form, const QString& key, const QString& label, const QString& hint);
  void add_field(QFormLayout* form, const QString& key, const QString& label, QWidget* editor);
  void add_strategies(QFormLayout* form);
  void commit(const Field& field);
  void commit_strategies();
  void show_document();
  void show_strategies();
  void show_effective_values();
  void show_error(const QString& message);

  Session& session_;
  std::vector<Field> fields_;
  QListWidget* strategies_ = nullptr;
  QLabel* other_error_ = nullptr;
  HardwarePanel* hardware_ = nullptr;
  bool updating_ = false;
};

}  // namespace zl::gui
