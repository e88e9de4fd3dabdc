// The pages made of charts: memory, step time, trade-off, traffic, and the overview of all four.
// Each follows the session. Ownership: plain widgets, owned by their parent. Threads: GUI thread.
#pragma once

#include "gui/session.h"
#include "gui/views/chart_page.h"

class QCheckBox;

namespace zl::gui {

// Highlights in a chart with one row per strategy those that are selected.
void highlight_selection(Session& session, Plot* plot, const QCheckBox* other = nullptr);

ChartPage* make_memory_page(Session& session, QWidget* parent);
ChartPage* make_time_page(Session& session, QWidget* parent);
ChartPage* make_tradeoff_page(Session& session, QWidget* parent);
ChartPage* make_traffic_page(Session& session, QWidget* parent);
QWidget* make_overview(Session& session, QWidget* parent);

}  // namespace zl::gui
