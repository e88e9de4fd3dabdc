#include "gui/views/pages.h"

#include <QSignalBlocker>
#include <QStackedWidget>
#include <QTabBar>
#include <QVBoxLayout>
#include <algorithm>

namespace zl::gui {
namespace {

QTabBar* make_bar(const QString& name) {
  auto* bar = new QTabBar;
  bar->setDocumentMode(true);
  bar->setDrawBase(false);
  bar->setExpanding(false);
  bar->setUsesScrollButtons(true);
  bar->setAccessibleName(name);
  return bar;
}

int tab_of(const QTabBar& bar, const QString& text) {
  for (int i = 0; i < bar.count(); ++i) {
    if (bar.tabText(i) == text) return i;
  }
  return -1;
}

}  // namespace

Pages::Pages(QWidget* parent)
    : QWidget(parent),
      groups_(make_bar(tr("Groups of pages"))),
      tabs_(make_bar(tr("Pages of the group"))),
      stack_(new QStackedWidget) {
  QFont bold = groups_->font();
  bold.setBold(true);
  groups_->setFont(bold);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(groups_);
  layout->addWidget(tabs_);
  layout->addWidget(stack_, 1);
  connect(groups_, &QTabBar::currentChanged, this, [this](int group) {
    if (!updating_) open_group(group);
  });
  connect(tabs_, &QTabBar::currentChanged, this, [this](int tab) {
    if (!updating_ && tab >= 0) show_index(tabs_->tabData(tab).toInt());
  });
  // Keys that walk along a bar stay there; a click means the page.
  connect(groups_, &QTabBar::tabBarClicked, this, &Pages::focus_current, Qt::QueuedConnection);
  connect(tabs_, &QTabBar::tabBarClicked, this, &Pages::focus_current, Qt::QueuedConnection);
}

void Pages::add(const QString& group, const QString& name, const QString& title,
                const QString& hint, QWidget* page) {
  pages_.push_back({group, name, title, hint, page});
  stack_->addWidget(page);
  const int index = static_cast<int>(pages_.size()) - 1;
  updating_ = true;
  if (tab_of(*groups_, group) < 0) {
    groups_->addTab(group);
    last_.push_back(index);
  }
  updating_ = false;
  show_index(std::max(0, current_));
}

void Pages::set_group_hint(const QString& group, const QString& hint) {
  groups_->setTabToolTip(tab_of(*groups_, group), hint);
}

int Pages::index_of(const QString& name) const {
  const auto found = std::find_if(pages_.begin(), pages_.end(),
                                  [&name](const Page& page) { return page.name == name; });
  return found == pages_.end() ? -1 : static_cast<int>(found - pages_.begin());
}

void Pages::open_group(int group) {
  if (group >= 0) show_index(last_[static_cast<std::size_t>(group)]);
}

// Only what has changed: a bar whose tabs go away under a click is confused.
void Pages::list_group(const QString& group) {
  std::vector<int> members;
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    if (pages_[i].group == group) members.push_back(static_cast<int>(i));
  }
  const bool same = tabs_->count() > 0 && tabs_->tabData(0).toInt() == members.front();
  while (!same && tabs_->count() > 0) tabs_->removeTab(0);
  for (int tab = tabs_->count(); tab < static_cast<int>(members.size()); ++tab) {
    const int index = members[static_cast<std::size_t>(tab)];
    const Page& page = pages_[static_cast<std::size_t>(index)];
    tabs_->addTab(page.title);
    tabs_->setTabData(tab, index);
    tabs_->setTabToolTip(tab, page.hint);
  }
}

void Pages::show_index(int index) {
  const Page& page = pages_[static_cast<std::size_t>(index)];
  const int group = tab_of(*groups_, page.group);
  updating_ = true;
  groups_->setCurrentIndex(group);
  list_group(page.group);
  for (int tab = 0; tab < tabs_->count(); ++tab) {
    if (tabs_->tabData(tab).toInt() == index) tabs_->setCurrentIndex(tab);
  }
  updating_ = false;
  last_[static_cast<std::size_t>(group)] = index;
  stack_->setCurrentWidget(page.widget);
  const bool changed = current_ != index;
  current_ = index;
  if (changed) Q_EMIT page_shown(page.name);
}

void Pages::focus_current() {
  if (current_ < 0) return;
  QWidget* widget = pages_[static_cast<std::size_t>(current_)].widget;
  if (widget->focusProxy() != nullptr) widget->setFocus();
}

bool Pages::show_page(const QString& name) {
  const int index = index_of(name);
  if (index < 0) return false;
  show_index(index);
  focus_current();
  return true;
}

void Pages::step(int by) {
  const int count = static_cast<int>(pages_.size());
  show_index((current_ + by + count) % count);
}

QString Pages::current() const {
  return current_ < 0 ? QString() : pages_[static_cast<std::size_t>(current_)].name;
}

QWidget* Pages::page(const QString& name) const {
  const int index = index_of(name);
  return index < 0 ? nullptr : pages_[static_cast<std::size_t>(index)].widget;
}

QStringList Pages::names() const {
  QStringList names;
  for (const Page& page : pages_) names << page.name;
  return names;
}

QString Pages::title(const QString& name) const {
  const int index = index_of(name);
  return index < 0 ? QString() : pages_[static_cast<std::size_t>(index)].title;
}

QString Pages::group(const QString& name) const {
  const int index = index_of(name);
  return index < 0 ? QString() : pages_[static_cast<std::size_t>(index)].group;
}

}  // namespace zl::gui
