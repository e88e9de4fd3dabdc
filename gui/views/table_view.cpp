#include "gui/views/table_view.h"

#include <QAbstractButton>
#include <QHeaderView>
#include <QItemSelectionModel>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <utility>

#include "gui/models/table_model.h"
#include "gui/views/plain_delegate.h"

namespace zl::gui {
namespace {

constexpr int kLeastRows = 4;  // of a table, below its header

const QSortFilterProxyModel& sorted_model(const QTableView& view) {
  return *static_cast<const QSortFilterProxyModel*>(view.model());
}

int row_of(const QTableView& view, const QModelIndex& index) {
  return sorted_model(view).mapToSource(index).row();
}

QModelIndex index_of(const QTableView& view, int row) {
  const QSortFilterProxyModel& sorted = sorted_model(view);
  return sorted.mapFromSource(sorted.sourceModel()->index(row, 0));
}

}  // namespace

QTableView* make_table_view(QAbstractItemModel* model, const QString& name, QWidget* parent) {
  auto* sorted = new QSortFilterProxyModel(parent);
  sorted->setSortRole(kSortRole);
  sorted->setFilterKeyColumn(-1);
  sorted->setFilterCaseSensitivity(Qt::CaseInsensitive);
  sorted->setSourceModel(model);
  auto* view = new QTableView(parent);
  view->setModel(sorted);
  view->setItemDelegate(new PlainDelegate(view));
  view->setAccessibleName(name);
  view->setSelectionBehavior(QAbstractItemView::SelectRows);
  view->setAlternatingRowColors(true);
  view->setSortingEnabled(true);
  view->sortByColumn(-1, Qt::AscendingOrder);  // the model's own order until a header is clicked
  view->setWordWrap(false);
  view->setShowGrid(false);
  view->verticalHeader()->hide();
  const int row = view->fontMetrics().height() + 8;
  view->verticalHeader()->setDefaultSectionSize(row);
  view->setMinimumHeight((kLeastRows + 1) * row);  // a small window scrolls
  view->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  view->horizontalHeader()->setResizeContentsPrecision(100);
  view->horizontalHeader()->setHighlightSections(false);
  view->setTabKeyNavigation(false);
  return view;
}

int current_row(const QTableView& view) { return row_of(view, view.currentIndex()); }

void set_current_row(QTableView& view, int row) { view.setCurrentIndex(index_of(view, row)); }

std::vector<int> selected_rows(const QTableView& view) {
  std::vector<int> rows;
  for (const QModelIndex& index : view.selectionModel()->selectedRows()) {
    rows.push_back(row_of(view, index));
  }
  return rows;
}

void select_rows(QTableView& view, const std::vector<int>& rows) {
  QItemSelection selection;
  for (const int row : rows) {
    const QModelIndex index = index_of(view, row);
    selection.select(index, index);
  }
  view.selectionModel()->select(selection,
                                QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
}

void filter_rows(QTableView& view, const QString& text) {
  static_cast<QSortFilterProxyModel*>(view.model())->setFilterFixedString(text);
}

std::vector<int> listed_rows(const QTableView& view) {
  std::vector<int> rows;
  for (int row = 0; row < view.model()->rowCount(); ++row) {
    rows.push_back(row_of(view, view.model()->index(row, 0)));
  }
  return rows;
}

void on_row_taken(QTableView* view, QAbstractButton* button, std::function<void(int)> take) {
  const auto take_current = [view, take = std::move(take)] { take(current_row(*view)); };
  QObject::connect(button, &QAbstractButton::clicked, view, take_current);
  QObject::connect(view, &QTableView::activated, view, take_current);
}

void on_row_reached(QTableView* view, std::function<void(int)> show) {
  QObject::connect(view->selectionModel(), &QItemSelectionModel::currentChanged, view,
                   [view, show = std::move(show)] { show(current_row(*view)); });
}

}  // namespace zl::gui
