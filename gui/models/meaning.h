// What a colour means, the same in every chart: parameters and what gathers them are blue,
// gradients and what reduces them orange, the optimizer green, activations and the compute that
// makes them light blue, communication vermilion. And what each name in a legend is. Ownership:
// values. Threads: GUI thread.
#pragma once

#include <QString>

#include "core/base/memory.h"
#include "core/trace/event.h"
#include "core/train/run_result.h"

namespace zl::gui {

// Indices for series_color() and fill_series().
std::size_t style_of(MemoryTag tag);
std::size_t style_of(Phase phase);
enum class TimePart : std::uint8_t {
  compute,
  communication,  // over data
  optimizer,
  stall,
  bubble,
  host,
  tensor,  // communication along these axes of the mesh
  pipeline
};
std::size_t style_of(TimePart part);
// Of what a rank sends or moves.
std::size_t style_of_move(const CollectiveTotals& totals);
// Of a strategy, whatever else is shown: those of the catalogue have fixed ones, others the next
// free one from the first time they are seen.
std::size_t style_of_strategy(const QString& name);

QString explained(MemoryTag tag);
QString explained(Phase phase);
QString explained(TimePart part);
QString explained_move(const std::string& collective);

}  // namespace zl::gui
