#include "gui/theme.h"

#include <QApplication>
#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>
#include <QProxyStyle>
#include <QStyleFactory>
#include <QStyleOption>
#include <array>
#include <cmath>

namespace zl::gui {
namespace {

constexpr std::array kOkabeIto{0x0072b2, 0xe69f00, 0x009e73, 0x56b4e9,
                               0xd55e00, 0xcc79a7, 0xf0e442, 0x8c8c8c};

QColor mixed(const QColor& a, const QColor& b, double share) {
  const auto mix = [share](int x, int y) {
    return static_cast<int>(std::lround(x * (1 - share) + y * share));
  };
  return {mix(a.red(), b.red()), mix(a.green(), b.green()), mix(a.blue(), b.blue())};
}

QPalette palette_of(QColor window, QColor base, QColor text, QColor button, QColor highlight) {
  QPalette palette(button, window);
  palette.setColor(QPalette::Window, window);
  palette.setColor(QPalette::Base, base);
  palette.setColor(QPalette::AlternateBase, mixed(base, text, 0.04));
  palette.setColor(QPalette::Text, text);
  palette.setColor(QPalette::WindowText, text);
  palette.setColor(QPalette::ButtonText, text);
  palette.setColor(QPalette::Button, button);
  palette.setColor(QPalette::ToolTipBase, base);
  palette.setColor(QPalette::ToolTipText, text);
  palette.setColor(QPalette::PlaceholderText, mixed(text, base, 0.45));
  palette.setColor(QPalette::Highlight, highlight);
  palette.setColor(QPalette::HighlightedText, Qt::white);
  palette.setColor(QPalette::Link, highlight);
  for (const auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText}) {
    palette.setColor(QPalette::Disabled, role, mixed(text, window, 0.55));
  }
  return palette;
}

// Hatch lines of one direction: y = slope * x + offset for every multiple of `gap`.
void hatch(QPainter& painter, const QRectF& area, double dx, double dy, double gap) {
  const double reach = area.width() + area.height();
  for (double at = 0; at < 2 * reach; at += gap) {
    if (dy == 0) {
      const double y = area.top() + at;
      if (y > area.bottom()) return;
      painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    } else if (dx == 0) {
      const double x = area.left() + at;
      if (x > area.right()) return;
      painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    } else {
      const double x = dx > 0 ? area.left() - area.height() + at : area.left() + at;
      if (x > area.right() + (dx > 0 ? 0 : area.height())) return;
      painter.drawLine(QPointF(x, area.top()), QPointF(x + dx * area.height(), area.bottom()));
    }
  }
}

// Fusion draws the box of a check mark darker than the window: on a dark one it cannot be seen.
class Style : public QProxyStyle {
 public:
  Style() : QProxyStyle(QStyleFactory::create("Fusion")) {}

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override {
    if (element != PE_IndicatorCheckBox && element != PE_IndicatorItemViewItemCheck) {
      return QProxyStyle::drawPrimitive(element, option, painter, widget);
    }
    const QPalette& palette = option->palette;
    const QRectF box = QRectF(option->rect).adjusted(1.5, 1.5, -1.5, -1.5);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    const bool focused = option->state & State_HasFocus;
    painter->setPen(QPen(focused ? palette.highlight().color() : faint(palette), 1));
    painter->setBrush(palette.base());
    painter->drawRoundedRect(box, 2, 2);
    if (option->state & State_On) {
      painter->setPen(QPen(palette.text().color(), 1.8));
      const auto at = [&box](double x, double y) {
        return QPointF(box.left() + x * box.width(), box.top() + y * box.height());
      };
      painter->drawPolyline(QPolygonF{at(0.2, 0.5), at(0.42, 0.75), at(0.82, 0.22)});
    }
    painter->restore();
  }
};

}  // namespace

void apply_appearance(Appearance appearance) {
  static const QPalette system = QApplication::palette();
  QApplication::setStyle(new Style);
  if (appearance == Appearance::system) {
    QApplication::setPalette(system);
  } else if (appearance == Appearance::light) {
    QApplication::setPalette(palette_of(QColor(0xf4f5f7), Qt::white, QColor(0x1d2129),
                                        QColor(0xe8eaee), QColor(0x1664b0)));
  } else {
    QApplication::setPalette(palette_of(QColor(0x22262c), QColor(0x191c21), QColor(0xe4e7eb),
                                        QColor(0x2f343c), QColor(0x2f7fd0)));
  }
}

void set_style(QWidget& widget, const QString& style) {
  if (widget.styleSheet() != style) widget.setStyleSheet(style);
}

bool is_dark(const QPalette& palette) { return palette.window().color().lightness() < 128; }

QColor series_color(std::size_t index) { return QColor(QRgb(kOkabeIto[index % kOkabeIto.size()])); }

void fill_series(QPainter& painter, const QRectF& area, std::size_t index) {
  if (area.width() <= 0 || area.height() <= 0) return;
  const QColor color = series_color(index);
  painter.fillRect(area, color);
  if (area.width() < 3) return;
  painter.save();
  painter.setClipRect(area, Qt::IntersectClip);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(mixed(color, color.lightness() > 110 ? Qt::black : Qt::white, 0.32), 1));
  constexpr double kGap = 6;
  switch ((index + index / kOkabeIto.size()) % kOkabeIto.size()) {
    case 0:
      break;  // plain
    case 1:
      hatch(painter, area, 1, 1, kGap);
      break;
    case 2:
      hatch(painter, area, -1, 1, kGap);
      break;
    case 3:
      hatch(painter, area, 1, 0, kGap);
      break;
    case 4:
      hatch(painter, area, 0, 1, kGap);
      break;
    case 5:
      hatch(painter, area, 1, 1, kGap);
      hatch(painter, area, -1, 1, kGap);
      break;
    case 6:
      hatch(painter, area, 1, 0, kGap);
      hatch(painter, area, 0, 1, kGap);
      break;
    default:
      hatch(painter, area, 1, 1, kGap / 2);
  }
  painter.restore();
}

void draw_symbol(QPainter& painter, const QPointF& centre, double radius, std::size_t shape) {
  const auto polygon = [&](int corners, double turn) {
    QPolygonF points;
    for (int i = 0; i < corners; ++i) {
      const double angle = turn + 2 * M_PI * i / corners;
      points << centre + 1.15 * radius * QPointF(std::sin(angle), -std::cos(angle));
    }
    painter.drawPolygon(points);
  };
  switch (shape % 6) {
    case 0:
      painter.drawEllipse(centre, radius, radius);
      break;
    case 1:
      polygon(4, M_PI / 4);
      break;
    case 2:
      polygon(3, 0);
      break;
    case 3:
      polygon(4, 0);
      break;
    case 4:
      polygon(3, M_PI);
      break;
    default:
      polygon(5, 0);
  }
}

QPen series_pen(std::size_t index, double width) {
  static constexpr std::array kDashes{Qt::SolidLine, Qt::DashLine, Qt::DashDotLine, Qt::DotLine,
                                      Qt::DashDotDotLine};
  return {series_color(index), width, kDashes[index % kDashes.size()]};
}

QColor faint(const QPalette& palette) {
  return mixed(palette.text().color(), palette.base().color(), 0.38);
}
QColor grid(const QPalette& palette) {
  return mixed(palette.text().color(), palette.base().color(), 0.85);
}
QColor pale_series_color(const QPalette& palette, std::size_t index) {
  return mixed(series_color(index), palette.base().color(), 0.72);
}
QColor highlight_band(const QPalette& palette) {
  return mixed(palette.highlight().color(), palette.base().color(), 0.82);
}
QColor warning(const QPalette& palette) {
  return is_dark(palette) ? QColor(0xf2a33a) : QColor(0xa65a00);
}
QColor good(const QPalette& palette) {
  return is_dark(palette) ? QColor(0x4cc38a) : QColor(0x0a7a4b);
}
QColor bad(const QPalette& palette) {
  return is_dark(palette) ? QColor(0xff7b6b) : QColor(0xb3261e);
}

bool has_fonts() {
  const QFontMetricsF metrics(QApplication::font());
  return metrics.horizontalAdvance("iiii") < 0.8 * metrics.horizontalAdvance("WWWW");
}

}  // namespace zl::gui
