#include "gui/views/strategy_view.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QItemSelectionModel>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QShortcut>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/models/strategy_model.h"
#include "gui/views/table_view.h"

namespace zl::gui {
namespace {

// One cell of a tab-separated file: the plain value.
QString tsv_cell(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return QString::fromStdString(*text);
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return QString::number(*whole);
  if (const auto* number = std::get_if<double>(&cell)) return QString::number(*number, 'g', 12);
  return {};
}

}  // namespace

StrategyView::StrategyView(Session& session, QWidget* parent)
    : QWidget(parent), session_(session), model_(new StrategyModel(session, this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  view_ = make_table_view(model_, tr("Strategies"), this);
  view_->setSelectionMode(QAbstractItemView::ExtendedSelection);
  view_->setContextMenuPolicy(Qt::CustomContextMenu);
  layout->setSpacing(0);
  layout->addWidget(view_);
  layout->addWidget(make_filter_line());  // below: rows that move are missed by the next click
  auto* escape = new QShortcut(QKeySequence(Qt::Key_Escape), this);
  escape->setContext(Qt::WidgetWithChildrenShortcut);
  connect(escape, &QShortcut::activated, this, &StrategyView::show_all);
  connect(&session, &Session::filter_changed, this, &StrategyView::show_filter);
  connect(&session, &Session::study_changed, this, &StrategyView::show_filter);
  connect(view_->horizontalHeader(), &QHeaderView::sortIndicatorChanged, this, [this](int column) {
    sorted_by_ = model_->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
  });
  connect(view_->selectionModel(), &QItemSelectionModel::selectionChanged, this,
          &StrategyView::selection_from_table);
  connect(&session, &Session::selection_changed, this, &StrategyView::selection_to_table);
  connect(model_, &QAbstractItemModel::modelAboutToBeReset, this, [this] { updating_ = true; });
  connect(view_->model(), &QAbstractItemModel::modelReset, this, [this] {
    updating_ = false;
    sort_as_before();
    selection_to_table();
  });
  connect(view_, &QTableView::doubleClicked, this, &StrategyView::pin_current);
  connect(view_, &QWidget::customContextMenuRequested, this, [this](const QPoint& at) {
    QMenu menu;
    menu.addAction(tr("&Show all in the charts"), this, &StrategyView::show_all);
    menu.addAction(tr("Pin as &baseline"), this, &StrategyView::pin_current);
    menu.addAction(tr("Copy as &TSV"), this, &StrategyView::copy_tsv);
    menu.addAction(tr("Copy as &Markdown"), this, &StrategyView::copy_markdown);
    menu.exec(view_->viewport()->mapToGlobal(at));
  });
}

QWidget* StrategyView::make_filter_line() {
  filter_line_ = new QWidget;
  filter_text_ = new QLabel;
  auto* all = new QPushButton(tr("Show all (Esc)"));
  connect(all, &QPushButton::clicked, this, &StrategyView::show_all);
  auto* line = new QHBoxLayout(filter_line_);
  line->setContentsMargins(6, 1, 6, 1);
  line->addWidget(filter_text_);
  line->addWidget(all);
  line->addStretch(1);
  filter_line_->hide();
  return filter_line_;
}

void StrategyView::show_filter() {
  const auto study = session_.study();
  const std::size_t all = study ? study->strategies.size() : 0, shown = session_.shown().size();
  filter_text_->setText(
      tr("The charts show %1 of %2 strategies: those that are ticked.").arg(shown).arg(all));
  filter_line_->setVisible(shown < all);
}

void StrategyView::show_all() { session_.hide({}); }

// A column inserted before the sorted one would take its place.
void StrategyView::sort_as_before() {
  QHeaderView* header = view_->horizontalHeader();
  if (sorted_by_.isEmpty()) return;
  for (int column = 0; column < model_->columnCount(); ++column) {
    const QVariant name = model_->headerData(column, Qt::Horizontal, Qt::DisplayRole);
    if (name.toString() != sorted_by_) continue;
    if (header->sortIndicatorSection() != column) {
      view_->sortByColumn(column, header->sortIndicatorOrder());
    }
    return;
  }
}

void StrategyView::selection_from_table() {
  if (updating_) return;
  std::vector<int> rows = selected_rows(*view_);
  std::sort(rows.begin(), rows.end());
  QStringList names;
  for (const int row : rows) names << model_->strategy(row);
  updating_ = true;
  session_.select(names);
  updating_ = false;
}

void StrategyView::selection_to_table() {
  if (updating_) return;
  updating_ = true;
  std::vector<int> rows;
  for (const QString& name : session_.selection()) {
    const int row = model_->row_of(name);
    if (row >= 0) rows.push_back(row);
  }
  select_rows(*view_, rows);
  updating_ = false;
}

Table StrategyView::copied_rows() const {
  Table table;
  table.columns = model_->table().columns;
  const QStringList& selection = session_.selection();
  for (const int row : listed_rows(*view_)) {
    if (!selection.isEmpty() && !selection.contains(model_->strategy(row))) continue;
    table.rows.push_back(model_->table().rows[row]);
  }
  return table;
}

QString StrategyView::as_tsv() const {
  const Table table = copied_rows();
  QStringList lines, cells;
  for (const Column& column : table.columns) cells << QString::fromStdString(column.name);
  lines << cells.join('\t');
  for (const auto& row : table.rows) {
    cells.clear();
    for (const Cell& cell : row) cells << tsv_cell(cell);
    lines << cells.join('\t');
  }
  return lines.join('\n') + "\n";
}

QString StrategyView::as_markdown() const {
  return QString::fromStdString(zl::render(copied_rows(), Format::md));
}

void StrategyView::copy_tsv() const { QApplication::clipboard()->setText(as_tsv()); }
void StrategyView::copy_markdown() const { QApplication::clipboard()->setText(as_markdown()); }

void StrategyView::pin_current() {
  const int row = current_row(*view_);
  if (row >= 0) session_.set_baseline(model_->strategy(row));
}

}  // namespace zl::gui
