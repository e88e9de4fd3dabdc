#include "gui/plot/plot.h"

#include <QAccessible>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <utility>

#include "gui/theme.h"

namespace zl::gui {

Plot::Plot(const QString& title, QWidget* parent)
    : QWidget(parent),
      title_(title),
      empty_text_(
          tr("Nothing to show: choose a model, a cluster and strategies in the scenario panel, and "
             "tick strategies in the table below.")) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(title);
  setAccessibleDescription(tr("Chart. Arrow keys move over its parts; its table has every value."));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  setAttribute(Qt::WA_OpaquePaintEvent);
}

void Plot::render_into(QPainter& painter, const QRectF& area) {
  marks_.clear();
  explanations_.clear();
  painter.fillRect(area, palette().base());
  painter.setFont(font());
  if (is_empty()) {
    painter.setPen(faint(palette()));
    painter.drawText(area.adjusted(12, 12, -12, -12), Qt::AlignCenter | Qt::TextWordWrap,
                     empty_text_);
    return;
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.save();
  draw(painter, area.adjusted(kMargin, kMargin, -kMargin, -kMargin), marks_);
  painter.restore();
}

void Plot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  render_into(painter, rect());
  if (stale_) {
    QColor veil = palette().base().color();
    veil.setAlphaF(0.65F);
    painter.fillRect(rect(), veil);
  }
  if (!hasFocus()) return;
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(palette().highlight().color(), 2));
  painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
  if (current_ < 0 || current_ >= static_cast<int>(marks_.size())) return;
  painter.setPen(QPen(palette().text().color(), 2));
  painter.drawRect(marks_[current_].area.adjusted(-2, -2, 2, 2));
}

void Plot::data_has_changed() {
  current_ = -1;
  update();
  Q_EMIT data_changed();
}

void Plot::set_highlighted(const std::vector<int>& rows) {
  if (rows == highlighted_) return;
  highlighted_ = rows;
  update();
}

bool Plot::is_highlighted(std::size_t row) const {
  return std::find(highlighted_.begin(), highlighted_.end(), static_cast<int>(row)) !=
         highlighted_.end();
}

void Plot::set_stale(bool stale) {
  if (stale == stale_) return;
  stale_ = stale;
  update();
}

void Plot::explain(const QRectF& area, const QString& text) {
  if (!text.isEmpty()) explanations_.push_back({area, text});
}

void Plot::set_current(int mark) {
  if (marks_.empty()) return;
  current_ = std::clamp(mark, 0, static_cast<int>(marks_.size()) - 1);
  const Mark& now = marks_[current_];
  setAccessibleDescription(now.text);
  QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&changed);
  if (isVisible()) {
    const QPoint where = now.area.center().toPoint();
    QToolTip::showText(mapToGlobal(where), now.text, this);
  }
  update();
}

int Plot::mark_at(const QPointF& position) const {
  // The last painted is on top.
  for (std::size_t i = marks_.size(); i-- > 0;) {
    const QRectF& area = marks_[i].area;
    const QPointF grow(std::max(0.0, (4 - area.width()) / 2),
                       std::max(0.0, (4 - area.height()) / 2));
    if (QRectF(area.topLeft() - grow, area.bottomRight() + grow).contains(position)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool Plot::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const int mark = mark_at(help->pos());
    QString text = mark < 0 ? QString() : marks_[mark].text;
    for (const Mark& each : explanations_) {
      if (text.isEmpty() && each.area.contains(help->pos())) text = each.text;
    }
    QToolTip::showText(help->globalPos(), text, this);  // nothing hides it
    return true;
  }
  return QWidget::event(event);
}

void Plot::keyPressEvent(QKeyEvent* event) {
  const int last = static_cast<int>(marks_.size()) - 1;
  switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down:
      return set_current(current_ + 1);
    case Qt::Key_Left:
    case Qt::Key_Up:
      return set_current(std::max(0, current_ - 1));
    case Qt::Key_Home:
      return set_current(0);
    case Qt::Key_End:
      return set_current(last);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (current_ >= 0 && current_ <= last) {
        Q_EMIT activated(marks_[current_].row);
      }
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

void Plot::mousePressEvent(QMouseEvent* event) {
  const int mark = mark_at(event->position());
  if (mark < 0) return;
  set_current(mark);
  Q_EMIT clicked(marks_[mark].row);
}

void Plot::mouseDoubleClickEvent(QMouseEvent* event) {
  const int mark = mark_at(event->position());
  if (mark >= 0) Q_EMIT activated(marks_[mark].row);
}

void Plot::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  update();
}

namespace {

constexpr double kLegendBox = 18;  // and the gap to its text

// Where each entry begins: its x and its line.
std::vector<std::pair<double, int>> place_legend(const QFontMetricsF& metrics,
                                                 const std::vector<QString>& names, double width) {
  constexpr double kApart = 16;
  std::vector<std::pair<double, int>> places;
  double x = 0;
  int line = 0;
  for (const QString& name : names) {
    const double wide = kLegendBox + 6 + metrics.horizontalAdvance(name);
    if (x > 0 && x + wide > width) {
      x = 0;
      ++line;
    }
    places.emplace_back(x, line);
    x += wide + kApart;
  }
  return places;
}

}  // namespace

int legend_lines(const QFontMetricsF& metrics, const std::vector<QString>& names, double width) {
  return names.empty() ? 0 : place_legend(metrics, names, width).back().second + 1;
}

QRectF draw_legend(QPainter& painter, const QPalette& palette, const QRectF& area,
                   const std::vector<QString>& names,
                   const std::function<void(std::size_t, const QRectF&)>& symbol,
                   std::vector<QRectF>* entries) {
  const QFontMetricsF metrics(painter.font(), painter.device());
  const double line = metrics.height() + 4;
  const auto places = place_legend(metrics, names, area.width());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const QPointF at = area.topLeft() + QPointF(places[i].first, places[i].second * line);
    symbol(i, QRectF(at.x(), at.y() + (line - 12) / 2, kLegendBox, 12));
    painter.setPen(palette.text().color());
    painter.drawText(QRectF(at.x() + kLegendBox + 6, at.y(), area.width(), line),
                     Qt::AlignLeft | Qt::AlignVCenter, names[i]);
    if (entries) {
      entries->emplace_back(at.x(), at.y(), kLegendBox + 6 + metrics.horizontalAdvance(names[i]),
                            line);
    }
  }
  if (names.empty()) return area;
  return area.adjusted(0, (places.back().second + 1) * line + 4, 0, 0);
}

}  // namespace zl::gui
