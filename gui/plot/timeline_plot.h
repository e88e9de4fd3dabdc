// What ran when: one lane per stream, the memory track on the same axis, zoom with a history.
// Ownership: owns a copy of its data. Threads: GUI thread.
#pragma once

#include <functional>
#include <optional>

#include "gui/plot/plot.h"

namespace zl::gui {

struct Span {
  double start = 0, end = 0;  // seconds
  std::int32_t event = 0;     // index in the trace
  std::uint8_t category = 0;
};

struct Lane {
  QString name;
  std::vector<Span> spans;                                   // in order, not overlapping
  std::function<QString(std::int32_t event)> describe = {};  // none: the chart's
  int source = 0;           // 1: of the strategy that stands beside the first
  bool is_summary = false;  // its spans stand for those of other lanes
  int stage = -1;           // of the pipeline whose events they are; -1: the strategy's own
  std::function<QString(std::int32_t event)> number = {};  // written into spans in place of names
};

// What one lane hands to another.
struct Arrow {
  std::size_t from = 0, to = 0;  // lanes
  double start = 0, end = 0;     // seconds
};

struct MemoryTrack {
  QString name;
  std::vector<double> x, y;  // seconds, bytes; a step function
};

struct TimelineData {
  std::vector<Lane> lanes;
  std::vector<Arrow> arrows;
  std::vector<QString> categories;
  std::vector<std::size_t> styles;  // of the categories' colours; none: their places
  std::vector<QString> explained;   // what each category is; none: nothing
  std::vector<MemoryTrack> memory;
  std::optional<double> limit;  // bytes
  double end = 0;               // seconds; the host may work behind the spans
  std::function<QString(std::int32_t event)> describe;  // the name of a span
};

class TimelinePlot : public Plot {
  Q_OBJECT

 public:
  using Plot::Plot;

  struct Range {
    double from = 0, to = 1;
    double length() const { return to - from; }
    bool operator==(const Range&) const = default;
  };
  struct Selected {
    std::size_t lane = 0, span = 0;
  };

  void set_data(TimelineData data);
  const TimelineData& data() const { return data_; }
  Table table() const override;  // of the visible range, at most 5,000 spans

  Range visible() const { return visible_; }
  // Shows this range; where it came from stays in the history.
  void zoom_to(Range range);
  void zoom_all() { zoom_to(whole_); }
  void zoom_back();
  void zoom_forward();
  QRectF row_area(std::size_t lane) const;  // as it was last painted
  std::optional<Range> measured() const { return measured_; }
  std::optional<Selected> selected() const { return selected_; }
  void select(std::size_t lane, std::size_t span);
  // The next span whose name contains the text, after the selected one; false when there is none.
  bool find_next(const QString& text);
  // How many there are, and which of them is selected, from 1; 0: none.
  struct Matches {
    std::size_t count = 0, at = 0;
  };
  Matches matches(const QString& text) const;

 Q_SIGNALS:
  void span_selected(std::int32_t event, std::size_t lane);
  void moment_selected(double seconds);
  void range_changed();  // visible or measured

 protected:
  void draw(QPainter& painter, const QRectF& area, std::vector<Mark>& marks) override;
  bool is_empty() const override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void draw_axis(QPainter& painter);
  void draw_lane(QPainter& painter, const Lane& lane, const QRectF& row) const;
  void draw_span(QPainter& painter, const Lane& lane, const Span& span, const QRectF& bar,
                 bool detailed) const;
  void draw_memory(QPainter& painter, const MemoryTrack& track, const QRectF& row) const;
  void draw_number(QPainter& painter, const QString& number, const QRectF& bar) const;
  void draw_names(QPainter& painter, double left, double width);
  void draw_arrows(QPainter& painter) const;
  void draw_measured(QPainter& painter) const;
  void draw_overlays(QPainter& painter, std::vector<Mark>& marks);
  QString name_of(const Lane& lane, const Span& span) const;
  std::size_t style_of(std::size_t category) const;
  double x_of(double seconds) const;
  double seconds_at(double x) const;

  std::optional<Selected> span_at(const QPointF& position) const;
  void zoom_by(double factor, double around);
  void set_visible(Range range);
  void step_span(int by);
  void step_lane(int by);

  TimelineData data_;
  Range whole_, visible_;
  std::vector<Range> back_, forward_;
  std::optional<Selected> selected_;
  std::optional<Range> measured_;
  std::optional<double> drag_from_;
  QRectF box_;  // lanes and memory, of the last painting
  double line_ = 0, lane_height_ = 0;
};

}  // namespace zl::gui
