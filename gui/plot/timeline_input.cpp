// Keys, mouse and zoom of the timeline.
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>

#include "gui/plot/timeline_plot.h"
#include "gui/units.h"

namespace zl::gui {

constexpr double kShortest = 1e-9;  // seconds that may fill the window

void TimelinePlot::set_visible(Range range) {
  const double length = std::clamp(range.length(), kShortest, whole_.length());
  range.from = std::clamp(range.from, whole_.from, whole_.to - length);
  visible_ = {range.from, range.from + length};
  update();
  if (testAttribute(Qt::WA_WState_Created)) Q_EMIT data_changed();
  Q_EMIT range_changed();
}

void TimelinePlot::zoom_to(Range range) {
  if (range == visible_) return;
  back_.push_back(visible_);
  forward_.clear();
  set_visible(range);
}

void TimelinePlot::zoom_back() {
  if (back_.empty()) return;
  forward_.push_back(visible_);
  const Range range = back_.back();
  back_.pop_back();
  set_visible(range);
}

void TimelinePlot::zoom_forward() {
  if (forward_.empty()) return;
  back_.push_back(visible_);
  const Range range = forward_.back();
  forward_.pop_back();
  set_visible(range);
}

void TimelinePlot::zoom_by(double factor, double around) {
  const double length = visible_.length() * factor;
  const double share = (around - visible_.from) / visible_.length();
  set_visible({around - share * length, around + (1 - share) * length});
}

void TimelinePlot::select(std::size_t lane, std::size_t span) {
  selected_ = {lane, span};
  const Span& now = data_.lanes[lane].spans[span];
  const bool outside = now.end < visible_.from || now.start > visible_.to;
  if (outside) {
    const double half = visible_.length() / 2, middle = (now.start + now.end) / 2;
    set_visible({middle - half, middle + half});
  }
  setAccessibleDescription(name_of(data_.lanes[lane], now));
  update();
  Q_EMIT span_selected(now.event, lane);
  Q_EMIT moment_selected(now.start);
}

bool TimelinePlot::find_next(const QString& text) {
  if (text.isEmpty() || data_.lanes.empty()) return false;
  std::size_t total = 0;
  for (const Lane& lane : data_.lanes) total += lane.spans.size();
  Selected at = selected_.value_or(Selected{data_.lanes.size() - 1, SIZE_MAX - 1});
  for (std::size_t looked = 0; looked <= total + data_.lanes.size(); ++looked) {
    ++at.span;
    while (at.span >= data_.lanes[at.lane].spans.size()) {
      at = {(at.lane + 1) % data_.lanes.size(), 0};
      if (++looked > total + data_.lanes.size()) return false;
    }
    const Span& span = data_.lanes[at.lane].spans[at.span];
    if (!name_of(data_.lanes[at.lane], span).contains(text, Qt::CaseInsensitive)) continue;
    select(at.lane, at.span);
    return true;
  }
  return false;
}

TimelinePlot::Matches TimelinePlot::matches(const QString& text) const {
  Matches found;
  if (text.isEmpty()) return found;
  for (std::size_t lane = 0; lane < data_.lanes.size(); ++lane) {
    const Lane& each = data_.lanes[lane];
    for (std::size_t span = 0; span < each.spans.size(); ++span) {
      if (!name_of(each, each.spans[span]).contains(text, Qt::CaseInsensitive)) continue;
      ++found.count;
      if (selected_ && selected_->lane == lane && selected_->span == span) found.at = found.count;
    }
  }
  return found;
}

void TimelinePlot::step_span(int by) {
  if (!selected_) {
    for (std::size_t lane = 0; lane < data_.lanes.size(); ++lane) {
      const auto& spans = data_.lanes[lane].spans;
      const auto found = std::find_if(spans.begin(), spans.end(), [this](const Span& span) {
        return span.end > visible_.from;
      });
      if (found != spans.end()) {
        return select(lane, static_cast<std::size_t>(found - spans.begin()));
      }
    }
    return;
  }
  const auto count = std::ssize(data_.lanes[selected_->lane].spans);
  const auto next =
      std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(selected_->span) + by, 0, count - 1);
  select(selected_->lane, static_cast<std::size_t>(next));
}

// The span of the neighbouring lane that runs at the same time, or starts next.
void TimelinePlot::step_lane(int by) {
  if (!selected_) return step_span(0);
  const double now = data_.lanes[selected_->lane].spans[selected_->span].start;
  auto lane = static_cast<std::ptrdiff_t>(selected_->lane) + by;
  for (; lane >= 0 && lane < std::ssize(data_.lanes); lane += by) {
    const auto& spans = data_.lanes[lane].spans;
    if (spans.empty()) continue;
    auto found = std::find_if(spans.begin(), spans.end(),
                              [now](const Span& span) { return span.end > now; });
    if (found == spans.end()) --found;
    return select(static_cast<std::size_t>(lane), static_cast<std::size_t>(found - spans.begin()));
  }
}

void TimelinePlot::keyPressEvent(QKeyEvent* event) {
  const double middle = (visible_.from + visible_.to) / 2, pan = visible_.length() / 8;
  const bool alt = event->modifiers() & Qt::AltModifier;
  switch (event->key()) {
    case Qt::Key_W:
      return zoom_by(0.75, middle);
    case Qt::Key_S:
      return zoom_by(1 / 0.75, middle);
    case Qt::Key_A:
      return set_visible({visible_.from - pan, visible_.to - pan});
    case Qt::Key_D:
      return set_visible({visible_.from + pan, visible_.to + pan});
    case Qt::Key_F:
      if (measured_) return zoom_to(*measured_);
      if (selected_) {
        const Span& span = data_.lanes[selected_->lane].spans[selected_->span];
        const double margin = std::max(kShortest, 2 * (span.end - span.start));
        return zoom_to({span.start - margin, span.end + margin});
      }
      return zoom_all();
    case Qt::Key_0:
      return zoom_all();
    case Qt::Key_M:
      if (selected_) {
        const Span& span = data_.lanes[selected_->lane].spans[selected_->span];
        measured_ = {span.start, span.end};
        update();
        Q_EMIT range_changed();
      }
      return;
    case Qt::Key_Escape:
      if (!measured_) return Plot::keyPressEvent(event);
      measured_.reset();
      Q_EMIT range_changed();
      return update();
    case Qt::Key_Backspace:
      return zoom_back();
    case Qt::Key_Left:
      return alt ? zoom_back() : step_span(-1);
    case Qt::Key_Right:
      return alt ? zoom_forward() : step_span(selected_ ? 1 : 0);
    case Qt::Key_Up:
      return step_lane(-1);
    case Qt::Key_Down:
      return step_lane(1);
    default:
      Plot::keyPressEvent(event);
  }
}

std::optional<TimelinePlot::Selected> TimelinePlot::span_at(const QPointF& position) const {
  for (std::size_t lane = 0; lane < data_.lanes.size(); ++lane) {
    if (!row_area(lane).contains(position)) continue;
    const auto& spans = data_.lanes[lane].spans;
    const double slack = 2 * visible_.length() / std::max(1.0, box_.width());
    const double at = seconds_at(position.x());
    const auto found = std::partition_point(
        spans.begin(), spans.end(), [&](const Span& span) { return span.end <= at - slack; });
    if (found == spans.end() || found->start > at + slack) return std::nullopt;
    return Selected{lane, static_cast<std::size_t>(found - spans.begin())};
  }
  return std::nullopt;
}

void TimelinePlot::mousePressEvent(QMouseEvent* event) {
  if (!box_.contains(event->position())) return;
  drag_from_ = seconds_at(event->position().x());
  measured_.reset();
  update();
}

void TimelinePlot::mouseMoveEvent(QMouseEvent* event) {
  if (!drag_from_) return;
  const double at = std::clamp(seconds_at(event->position().x()), visible_.from, visible_.to);
  measured_ = {std::min(at, *drag_from_), std::max(at, *drag_from_)};
  update();
}

void TimelinePlot::mouseReleaseEvent(QMouseEvent* event) {
  if (!drag_from_) return;
  drag_from_.reset();
  const double pixel = visible_.length() / std::max(1.0, box_.width());
  if (measured_ && measured_->length() > 3 * pixel) return Q_EMIT range_changed();
  measured_.reset();
  Q_EMIT range_changed();
  if (const auto hit = span_at(event->position())) return select(hit->lane, hit->span);
  Q_EMIT moment_selected(seconds_at(event->position().x()));
}

void TimelinePlot::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const auto hit = span_at(event->position())) {
    const Span& span = data_.lanes[hit->lane].spans[hit->span];
    const double margin = std::max(kShortest, 2 * (span.end - span.start));
    zoom_to({span.start - margin, span.end + margin});
  }
}

void TimelinePlot::wheelEvent(QWheelEvent* event) {
  const double turns = event->angleDelta().y() / 120.0;
  if (event->modifiers() & Qt::ShiftModifier) {
    const double pan = -turns * visible_.length() / 8;
    set_visible({visible_.from + pan, visible_.to + pan});
  } else {
    zoom_by(std::pow(0.8, turns), seconds_at(event->position().x()));
  }
  event->accept();
}

bool TimelinePlot::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return Plot::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  if (const auto hit = span_at(help->pos())) {
    const Span& span = data_.lanes[hit->lane].spans[hit->span];
    QToolTip::showText(
        help->globalPos(),
        name_of(data_.lanes[hit->lane], span) + "\n" + seconds_text(span.end - span.start), this);
  } else {
    QToolTip::hideText();
  }
  return true;
}

}  // namespace zl::gui
