// Attention backward: probabilities recomputed tile by tile (Dao et al. 2022, algorithm 4).
#include <vector>

#include "backends/cpu/ops/attention_block_gradients.h"
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
  const AttentionShape& shape = op.shape;
  const std::int64_t held = held_bytes<T>(op.mask, op.shape, 4) / shape.heads;
  for (std::int64_t heads = kMostHeads; heads > 1; --heads) {
    const bool even = shape.kv_heads % heads == 0 &&
                      shape.batch * shape.kv_heads / heads % std::max(context.threads, 1) == 0;
    if (even && heads * held <= cache_bytes()) return heads;
  }
  return 1;
}

// What `together` kv heads from `kv_head` on read for the tile after the one at `first`: part
// `part` of as many.
template <class T>
void look_ahead(const AttentionBackward& op, std::int64_t batch, std::int64_t kv_head,
                std::int64_t together, std::int64_t first, std::int64_t part, RowsAhead& ahead) {
  const AttentionShape& shape = op.shape;
  const std::int64_t width = shape.head_size, group = shape.heads / shape.kv_heads;
  const std::int64_t columns = together * group * width, head = kv_head * group;
  const std::int64_t next = first + kTile, count = std::min(kTile, shape.sequence - next);
  const std::int64_t begin = count * part / together;
  const std::int64_t rows = count * (part + 1) / together - begin;
  const std::int64_t row = batch * shape.sequence + next + begin;
  const auto add = [&](const HeadColumns& of, std::int64_t at, std::int64_t wide) {
    add_rows<T>(of, at, rows, wide, ahead);
  };
  add(head_columns(op.qkv.q, head, width), row, columns);
  add(head_columns(op.qkv.k, kv_head, width), row, together * width);
  add(head_columns(op.qkv.v, kv_head, width), row, together * width);
  add(output_columns(op.dout, head, width), row, columns);
  if (!meets_all_at_once(op.mask, shape, head, next)) {
    add(output_columns(op.out, head, width), row, columns);
  }
}

// kv heads that are taken through a sequence together, a tile of queries of each in turn.
template <class T>
void run_block_heads(const AttentionBackward& op, std::int64_t batch, std::int64_t kv_head,
                     std::int64_t together) {
  using A = Arithmetic<T>;
  static thread_local std::vector<Scratch<A>> own(kMostHeads);
  static thread_local Scratch<A> shared;
  static thread_local RowsAhead ahead;
  std::vector<BlockHeadGroup<T>> groups;
  groups.reserve(static_cast<std::size_t>(together));
  for (std::int64_t i = 0; i < together; ++i) {
    groups.emplace_back(op, batch, kv_head + i, own[static_cast<std::size_t>(i)], shared, ahead);
  }
  for (std::int64_t first = 0; first < op.shape.sequence; first += kTile) {
    for (std::int64_t part = 0; part < together; ++part) {
      BlockHeadGroup<T>& group = groups[static_cast<std::size_t>(part)];
      ahead.clear();
      if (first + kTile < op.shape.sequence) {
        look_ahead<T>(op, batch, kv_head, together, first, part, ahead);
        group.look_ahead(first);
      }
      group.add_queries(first);
    }
  }
  for (BlockHeadGroup<T>& group : groups) group.finish();
  end_of_streams();
}

template <class T>
void run_head(const AttentionBackward& op, std::int64_t batch, std::int64_t kv_head) {
  static thread_local Scratch<Arithmetic<T>> own, shared;
  HeadGroup<T> group(op, batch, kv_head, own, shared);
  for (std::int64_t first = 0; first < op.shape.sequence; first += kTile) group.add_queries(first);
  group.finish();
}

}  // namespace

void execute(const AttentionBackward& op, const ExecContext& context) {
  const ExecContext team = attention_team(context, op.cost().flops);
  with_float_type(op.qkv.dtype(), op.kName, [&](auto type) {
    using T = decltype(type);
    const bool has_blocks = op.mask.has_blocks();
    const std::int64_t together = has_blocks ? heads_together<T>(op, team) : 1;
    const std::int64_t parts = op.shape.kv_heads / together;
    parallel_tasks(team, op.shape.batch * parts, [&](std::int64_t task) {
      const std::int64_t batch = task / parts, kv_head = task % parts * together;
      if (has_blocks) return run_block_heads<T>(op, batch, kv_head, together);
      run_head<T>(op, batch, kv_head);
    });
  });
}

}  // namespace zl::cpu
