#include "core/device/communicator.h"

#include <string>

#include "core/base/error.h"

namespace zl {

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
    case CollectiveKind::all_to_all:
      return others * (count / ranks) * element;
  }
  return 0;
}

std::int64_t bytes_in_place(const Segment& segment) {
  const auto begin_of = [](const TensorView& view) {
    return reinterpret_cast<std::intptr_t>(view.data);
  };
  const std::intptr_t begin = std::max(begin_of(segment.source), begin_of(segment.destination));
  const std::intptr_t end = std::min(begin_of(segment.source) + segment.source.bytes(),
                                     begin_of(segment.destination) + segment.destination.bytes());
  return std::max<std::int64_t>(0, end - begin);
}

std::int64_t wire_bytes(const Collective& collective, int ranks) {
  std::int64_t bytes = 0;
  for (const Segment& segment : collective.segments) {
    bytes += wire_bytes(collective.kind, segment, ranks);
  }
  return bytes;
}

bool can_reduce(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::f64:
    case DType::f32:
    case DType::bf16:
    case DType::f16:
      return true;
    case DType::i32:
      return op != ReduceOp::average;
    default:
      return false;
  }
}

void check_collective(const Collective& collective, int ranks) {
  const auto require = [&](bool ok, const char* what) {
    if (ok) return;
    throw Error(ErrorCode::failed, std::string(name_of(collective.kind)) + ": " + what);
  };
  require(!collective.segments.empty(), "there is at least one tensor");
  for (const auto& [source, destination] : collective.segments) {
    const bool gathers = collective.kind == CollectiveKind::all_gather;
    const bool scatters = collective.kind == CollectiveKind::reduce_scatter;
    const bool reduces = scatters || collective.kind == CollectiveKind::all_reduce;
    require(source.dtype == destination.dtype, "source and destination have one type");
    require(!reduces || can_reduce(source.dtype, collective.op),
            "fp64, fp32, bf16 and fp16 can be reduced, int32 except by average");
    require(source.count() * (gathers ? ranks : 1) == destination.count() * (scatters ? ranks : 1),
            "element counts of source and destination fit the number of ranks");
    require(collective.kind != CollectiveKind::all_to_all || source.count() % ranks == 0,
            "the source is one chunk of equal size for each rank");
  }
}

void check_messages(std::span<const Message> messages, int rank, int ranks) {
  for (const Message& message : messages) {
    const bool is_other = message.peer >= 0 && message.peer < ranks && message.peer != rank;
    ZL_CHECK(is_other, "a message of rank " + std::to_string(rank) + " of " +
                           std::to_string(ranks) + (message.sends ? " to" : " from") + " rank " +
                           std::to_string(message.peer) + ": the peer must be another rank");
  }
}

}  // namespace zl
