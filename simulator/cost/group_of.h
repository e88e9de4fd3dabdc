// The group of a collective or message event, from what the event says of it and the rank.
// Threads: pure functions.
#pragma once

#include "core/trace/event.h"

namespace zl::sim {

// Where `rank` of the world stands in its group.
inline int coordinate_of(const TraceEvent& event, int rank) {
  return event.k == 0 ? 0 : static_cast<int>(rank / event.stride % event.k);
}

// The rank of the world that stands at `coordinate` of the group of `rank`.
inline int member_of(const TraceEvent& event, int rank, int coordinate) {
  return rank + (coordinate - coordinate_of(event, rank)) * event.stride;
}

// Of a message: the other rank of the world.
inline int peer_of(const TraceEvent& event, int rank) {
  return member_of(event, rank, static_cast<int>(event.n));
}

}  // namespace zl::sim
