// Attention backward: probabilities recomputed tile by tile (Dao et al. 2022, algorithm 4).
#include <vector>

#include "backends/cpu/ops/attention_head_group.h"
#include "backends/cpu/ops/parallel.h"
#include "core/ops/attention.h"
#include "core/ops/elementwise.h"

namespace zl::cpu {
namespace {

constexpr std::int64_t kMostHeads = 4;

// How many kv heads go through a sequence together, since their rows lie side by side in memory:
// where so few blocks exist that what they hold fits the cache.
template <class T>
std::int64_t heads_together(const AttentionBackward& op, const ExecContext& context) {
  if (!op.mask.has_blocks()) return 1;
  const AttentionShape& shape = op.shape;
  const std::int64_t held = held_bytes<T>(op.mask, op.shape, 4) / shape.heads;
  for (std::int64_t heads = kMostHeads; heads > 1; --heads) {
    const bool even = shape.kv_heads % heads == 0 &&
                      shape.batch * shape.kv_heads / heads % std::max(context.threads, 1) == 0;
    if (even && heads * held <= kCacheBytes) return heads;
  }
  return 1;
}

}  // namespace

void execute(const AttentionBackward& op, const ExecContext& context) {
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    using T = decltype(type);
    using A = Arithmetic<T>;
    const AttentionShape& shape = op.shape;
    const std::int64_t together = heads_together<T>(op, context);
    const std::int64_t parts = shape.kv_heads / together;
    parallel_tasks(context, shape.batch * parts, [&](std::int64_t task) {
      static thread_local std::vector<Scratch<A>> own(kMostHeads);
      static thread_local Scratch<A> shared;
      std::vector<HeadGroup<T>> groups;
      groups.reserve(static_cast<std::size_t>(together));
      for (std::int64_t i = 0; i < together; ++i) {
        groups.emplace_back(op, task / parts, task % parts * together + i,
                            own[static_cast<std::size_t>(i)], shared);
      }
      for (std::int64_t first = 0; first < shape.sequence; first += kTile) {
        for (HeadGroup<T>& group : groups) group.add_queries(first);
      }
      for (HeadGroup<T>& group : groups) group.finish();
    });
  });
}

}  // namespace zl::cpu
