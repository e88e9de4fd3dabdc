// The pages of the window, grouped by what one does: a bar of groups over a bar of the pages of the
// group that is open. A group remembers which of its pages was shown last.
// Ownership: owns its pages. Threads: GUI thread.
#pragma once

#include <QWidget>
#include <vector>

class QStackedWidget;
class QTabBar;

namespace zl::gui {

class Pages : public QWidget {
  Q_OBJECT

 public:
  explicit Pages(QWidget* parent = nullptr);

  // Pages of one group are added one after the other. `hint` is the tool tip of the page's tab.
  void add(const QString& group, const QString& name, const QString& title, const QString& hint,
           QWidget* page);
  void set_group_hint(const QString& group, const QString& hint);

  // False for a name that there is not. A page with a focus proxy gets the focus.
  bool show_page(const QString& name);
  void step(int by);  // to the next or previous page, over the ends too
  QString current() const;
  QWidget* page(const QString& name) const;
  QStringList names() const;
  QString title(const QString& name) const;
  QString group(const QString& name) const;

 Q_SIGNALS:
  void page_shown(const QString& name);

 private:
  struct Page {
    QString group, name, title, hint;
    QWidget* widget = nullptr;
  };
  int index_of(const QString& name) const;
  void show_index(int index);
  void open_group(int group);
  void list_group(const QString& group);
  void focus_current();

  std::vector<Page> pages_;
  std::vector<int> last_;  // of each group
  QTabBar* groups_;
  QTabBar* tabs_;
  QStackedWidget* stack_;
  int current_ = -1;
  bool updating_ = false;
};

}  // namespace zl::gui
