// The strategy table: one row per strategy of the study, beside a baseline when one is pinned.
// Ownership: refers to the session. Threads: GUI thread.
#pragma once

#include <QAbstractTableModel>

#include "gui/session.h"
#include "results/format.h"

namespace zl::gui {

class StrategyModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  explicit StrategyModel(Session& session, QObject* parent = nullptr);

  // What is shown, for copying.
  const Table& table() const { return table_; }
  QString strategy(int row) const;
  int row_of(const QString& strategy) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  // The tick before a name: whether the charts show the strategy.
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  void refill();
  QVariant color(std::size_t row, std::size_t column) const;

  Session& session_;
  Table table_;
};

}  // namespace zl::gui
