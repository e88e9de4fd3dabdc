// What a colour means, the same in every chart: parameters and what gathers them are blue,
// gradients and what reduces them orange, the optimizer green, activations and the compute that
// makes them light blue, communication vermilion. And what each name in a legend is. Ownership:
// values. Threads: GUI thread.
#pragma once

#include <QString>

#include "core/base/memory.h"
#include "core/trace/event.h"

namespace zl::gui {

// Indices for series_color() and fill_series().
std::size_t style_of(MemoryTag tag);
std::size_t style_of(Phase phase);
enum class TimePart : std::uint8_t { compute, communication, optimizer, stall, bubble, host };
std::size_t style_of(TimePart part);
// Of what a rank sends or moves: "all_gather", "copy"; `group` as CollectiveTotals has it.
std::size_t style_of_move(const std::string& collective, const std::string& group,
                          const std::string& link);
// Of a strategy, whatever else is shown: those of the catalogue have fixed ones, others the next
// free one from the first time they are seen.
std::size_t style_of_strategy(const QString& name);

QString explained(MemoryTag tag);
QString explained(Phase phase);
QString explained(TimePart part);
QString explained_move(const std::string& collective);

}  // namespace zl::gui
