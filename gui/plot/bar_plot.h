// Horizontal stacked bars, one row per strategy: memory by tag, step time by part, wire bytes.
// Ownership: owns a copy of its data. Threads: GUI thread.
#pragma once

#include <QStringList>
#include <optional>

#include "gui/plot/plot.h"

namespace zl::gui {

struct BarRow {
  QString label;
  std::vector<double> values;  // one per series
  QString note;                // behind the total
  bool bad = false;            // paints the note as a warning
  double low = 0, high = 0;    // error bar of the total; 0: none
  QString explained = {};      // what the label names
};

// Of its parts.
double total(const BarRow& row);

struct BarData {
  QString rows_name;  // of the table's first column
  std::vector<QString> series;
  std::vector<std::size_t> styles;  // colour and hatch of each series; none: its place
  std::vector<QString> explained;   // what each series is; none: nothing
  std::vector<BarRow> rows;
  Unit unit = Unit::none;
  std::optional<double> limit;  // a line across all rows
  QString limit_text;
  QString caption;  // below the axis: what the numbers are
};

inline constexpr double kLeastRow = 0.75;  // of a line's height, with a font to match

class BarPlot : public Plot {
  Q_OBJECT

 public:
  using Plot::Plot;

  void set_data(BarData chart);
  const BarData& data() const { return data_; }
  // Every bar as long as the others, its parts as shares.
  void set_share(bool share);
  // It may be squeezed: to one line of legend, no caption, and rows of small text.
  void set_compact(bool compact);
  Table table() const override;
  QSize minimumSizeHint() const override;
  // Where one row's bars begin and how long a value is, in pixels of the last painting.
  double origin() const { return origin_; }
  double pixels_per_unit() const { return scale_; }
  // The value at the right edge. Bars beyond it are broken there and the caption says so: one
  // giant, or a capacity far away, leaves the others their length.
  double axis_end() const;

 protected:
  void draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) override;
  bool is_empty() const override { return data_.rows.empty(); }
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Layout {
    QRectF bars;        // where bars may be
    double labels = 0;  // left edge of the row labels
    double row_height = 0;
    double maximum = 0;  // value at the right edge
    double line = 0;     // text height
    bool brief = false;  // of the notes the sign alone
  };
  std::vector<std::size_t> shown_series() const;
  std::vector<QString> shown_names() const;
  double full_height(double width) const;
  double least_height() const;
  // What of the legend there is room for; the rest is counted in a last entry without a symbol.
  std::vector<QString> legend(const QRectF& area, bool tight) const;
  QRectF draw_legend_of(QPainter& painter, const QRectF& area, bool tight);
  void draw_rows(QPainter& painter, const Layout& layout, std::vector<Mark>& marks);
  void draw_caption(QPainter& painter, const QRectF& line, bool tight);
  std::size_t style_of(std::size_t series) const;
  QString end_text(const BarRow& row, bool brief) const;
  QString caption_text() const;
  Layout lay_out(const QRectF& area, const QRectF& below, const QFontMetricsF& metrics,
                 bool tight) const;
  void draw_labels(QPainter& painter, const Layout& layout, std::size_t row);
  void draw_break(QPainter& painter, const QRectF& bar) const;
  void draw_axis(QPainter& painter, const Layout& layout) const;
  void draw_row(QPainter& painter, const Layout& layout, std::size_t row,
                std::vector<Mark>& marks) const;
  void draw_error_bar(QPainter& painter, const BarRow& row, double middle) const;
  void draw_limit(QPainter& painter, const Layout& layout) const;

  BarData data_;
  bool share_ = false, compact_ = false;
  double origin_ = 0, scale_ = 0;
};

}  // namespace zl::gui
