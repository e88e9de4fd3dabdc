// Names of what ranks do together, light enough for events and books.
// Ownership: values. Threads: values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zl {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all
};
inline constexpr std::size_t kCollectiveKinds = 5;
enum class ReduceOp : std::uint8_t { sum, average, max };
// What a collective serves, for the ledger: gradients and weights, or a few scalars.
enum class Purpose : std::uint8_t { data, control };

// Which ranks take part: those that differ in one coordinate of the mesh only (parallel/mesh.h).
// `data` is shard and replicate together, `secondary` a part of shard, `world` all ranks.
enum class Axis : std::uint8_t {
  data,
  tensor,
  context,
  shard,
  replicate,
  pipeline,
  expert,
  world,
  secondary
};
inline constexpr std::size_t kAxes = 9;

const char* name_of(CollectiveKind kind);
const char* name_of(Axis axis);
const char* name_of(Purpose purpose);

}  // namespace zl
