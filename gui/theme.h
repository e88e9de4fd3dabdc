// Colours and patterns: light and dark palettes, Okabe-Ito series colours that never stand alone.
// Ownership: values. Threads: GUI thread.
#pragma once

#include <QColor>
#include <QPalette>
#include <QRectF>
#include <QString>

class QPainter;
class QWidget;

namespace zl::gui {

enum class Appearance : std::uint8_t { system, light, dark };

// Sets style and palette of the application.
void apply_appearance(Appearance appearance);

bool is_dark(const QPalette& palette);

// Sets a widget's style sheet where it is another: one that is set again is worked out again.
void set_style(QWidget& widget, const QString& style);

// Eight colours that stay apart under every colour blindness (Okabe and Ito 2008); more repeat
// under other hatches.
QColor series_color(std::size_t index);
// Fills with the colour and, over it, a hatch of the index: colour is never the only difference.
void fill_series(QPainter& painter, const QRectF& area, std::size_t index);
// A filled symbol of one of six shapes.
void draw_symbol(QPainter& painter, const QPointF& centre, double radius, std::size_t shape);
// Of lines.
QPen series_pen(std::size_t index, double width);

// Text between foreground and background, for axes and hints.
QColor faint(const QPalette& palette);
QColor grid(const QPalette& palette);
// A series' colour behind other marks: opaque, which Qt fills ten times faster than see-through.
QColor pale_series_color(const QPalette& palette, std::size_t index);
// Behind the row that is selected.
QColor highlight_band(const QPalette& palette);
QColor warning(const QPalette& palette);
QColor good(const QPalette& palette);
QColor bad(const QPalette& palette);

// Proportional glyphs are there: without fonts every glyph is the same box.
bool has_fonts();

}  // namespace zl::gui
