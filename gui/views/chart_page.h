// A chart with its header: title, switches, "show as table", export.
// Ownership: owns the plot. Threads: GUI thread.
#pragma once

#include <QWidget>

class QHBoxLayout;
class QStackedWidget;
class QTableView;
class QToolButton;

namespace zl::gui {

class Plot;
class TableModel;

class ChartPage : public QWidget {
  Q_OBJECT

 public:
  explicit ChartPage(Plot* plot, QWidget* parent = nullptr);

  Plot* plot() const { return plot_; }
  // Puts a control into the header, before the buttons.
  void add_control(QWidget* control);
  void show_as_table(bool table);
  bool shows_table() const;
  void export_as();  // asks for the file

 private:
  void refill();

  Plot* plot_;
  QHBoxLayout* header_;
  QStackedWidget* stack_;
  QTableView* view_;
  TableModel* model_;
  QToolButton* toggle_;
};

// A widget under a bold line of text.
QWidget* titled(const QString& title, QWidget* widget);

}  // namespace zl::gui
