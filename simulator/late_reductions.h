// Reductions that run after work which follows them in the trace, where gradients are reduced when
// all passes have ended.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "core/trace/trace.h"
#include "simulator/timeline.h"

namespace zl::sim {

// A reduction of gradients on the compute stream: no other is late.
bool may_be_late(const TraceEvent& event);

// Their indices in the trace.
std::set<std::size_t> late_reductions(const Trace& trace, const std::vector<EventTime>& times);

}  // namespace zl::sim
