// How one strategy cuts model and data over the ranks, as a form: every edit goes through the
// session's undo history; what cannot be is marked at its field with the reason.
// Ownership: refers to the session. Threads: GUI thread.
#pragma once

#include <QGroupBox>
#include <array>

#include "gui/models/mesh_edit.h"
#include "gui/session.h"

class QLabel;

namespace zl::gui {

class MeshPanel : public QGroupBox {
  Q_OBJECT

 public:
  explicit MeshPanel(Session& session, QWidget* parent = nullptr);

  // Of one of kMeshKeys.
  QWidget* field(const QString& key) const;
  QString error_at(const QString& key) const;
  // The strategy that the fields are of.
  const QString& strategy() const { return strategy_; }

 Q_SIGNALS:
  // A list was typed where one value belongs; the field is as it was.
  void list_typed(const QString& key, const QString& values);

 private:
  struct Row {
    QLabel* label = nullptr;
    QWidget* editor = nullptr;
    QString hint, error;
  };
  QWidget* make_editor(const char* key);
  MeshTexts texts() const;
  void commit();
  bool asks_for_list();
  void choose_strategy();
  void show_mesh();
  void show_error(const QString& message);

  Session& session_;
  std::array<Row, kMeshKeys.size()> rows_;
  QString strategy_;
  bool updating_ = false;
};

}  // namespace zl::gui
