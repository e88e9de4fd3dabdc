#include "gui/models/table_model.h"

#include "gui/units.h"

namespace zl::gui {

QVariant raw_value(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return QVariant(qlonglong(*whole));
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  if (const auto* text = std::get_if<std::string>(&cell)) return QString::fromStdString(*text);
  return {};
}

void TableModel::set_table(Table table) {
  beginResetModel();
  table_ = std::move(table);
  endResetModel();
}

int TableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(table_.rows.size());
}

int TableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(table_.columns.size());
}

QVariant TableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto column = static_cast<std::size_t>(index.column());
  const Cell& cell = table_.rows[index.row()][column];
  const Column& described = table_.columns[column];
  switch (role) {
    case Qt::DisplayRole:
      return cell_text(cell, described.unit);
    case kSortRole:
      return raw_value(cell);
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignVCenter |
                      (described.align == Align::right ? Qt::AlignRight : Qt::AlignLeft));
    default:
      return {};
  }
}

QVariant TableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return QString::fromStdString(table_.columns[section].name);
}

}  // namespace zl::gui
