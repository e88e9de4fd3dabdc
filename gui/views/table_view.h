// The tables of every page: sorted by raw value, with right-aligned numbers and keyboard selection.
// Rows are the model's, however the view is sorted or filtered; -1: none.
// Ownership: views belong to their parents. Threads: GUI thread.
#pragma once

#include <functional>
#include <vector>

class QAbstractButton;
class QAbstractItemModel;
class QString;
class QTableView;
class QWidget;

namespace zl::gui {

QTableView* make_table_view(QAbstractItemModel* model, const QString& name, QWidget* parent);

int current_row(const QTableView& view);  // under the cursor
void set_current_row(QTableView& view, int row);
std::vector<int> selected_rows(const QTableView& view);
void select_rows(QTableView& view, const std::vector<int>& rows);
// Keeps the rows with the text in some column, in any case.
void filter_rows(QTableView& view, const QString& text);
std::vector<int> listed_rows(const QTableView& view);  // those that pass the filter, as sorted

// Calls with the row under the cursor: when Enter, a double click or the button take it, and when
// the cursor comes to it.
void on_row_taken(QTableView* view, QAbstractButton* button, std::function<void(int)> take);
void on_row_reached(QTableView* view, std::function<void(int)> show);

}  // namespace zl::gui
