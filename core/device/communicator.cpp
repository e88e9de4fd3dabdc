#include "core/device/communicator.h"

namespace zl {

const char* name_of(CollectiveKind kind) {
  constexpr const char* kNames[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(Group group) { return group == Group::data ? "data" : "control"; }

std::int64_t wire_bytes(CollectiveKind kind, const Segment& segment, int ranks) {
  const auto element = static_cast<std::int64_t>(size_of(segment.source.dtype));
  const std::int64_t count = segment.source.count();
  const std::int64_t others = ranks - 1;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * others * ((count + ranks - 1) / ranks) * element;
    case CollectiveKind::reduce_scatter:
      return others * segment.destination.count() * element;
    case CollectiveKind::all_gather:
      return others * count * element;
    case CollectiveKind::broadcast:
      return (count * others + ranks - 1) / ranks * element;
  }
  return 0;
}

}  // namespace zl
