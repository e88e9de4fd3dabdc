// A zl::Table as an item model: the twin that every chart shows as a table.
// Ownership: owns a copy of the table. Threads: GUI thread.
#pragma once

#include <QAbstractTableModel>

#include "results/format.h"

namespace zl::gui {

inline constexpr int kSortRole = Qt::UserRole;  // raw values

class TableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;

  void set_table(Table table);
  const Table& table() const { return table_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  Table table_;
};

// The raw value for sorting: a number, a text, or nothing.
QVariant raw_value(const Cell& cell);

}  // namespace zl::gui
