// How attention ops are cut and where their heads lie: what cudnn_graph.h says without cuDNN.
#include <algorithm>

#include "backends/cuda/cudnn_graph.h"
#include "core/ops/attention.h"

namespace zl::cuda {

std::vector<AttentionPiece> cut(const AttentionShape& shape, std::int64_t most) {
  std::vector<AttentionPiece> pieces;
  if (most < 1) return pieces;
  const std::int64_t batches = std::max<std::int64_t>(1, most / shape.kv_heads);
  const std::int64_t heads = std::min(most, shape.kv_heads);
  for (std::int64_t batch = 0; batch < shape.batch; batch += batches) {
    for (std::int64_t head = 0; head < shape.kv_heads; head += heads) {
      pieces.push_back({batch, head, std::min(batches, shape.batch - batch),
                        std::min(heads, shape.kv_heads - head)});
    }
  }
  return pieces;
}

HeadTensor head_tensor(const AttentionShape& shape, const AttentionPiece& piece, HeadPart part) {
  const std::int64_t group = shape.heads / shape.kv_heads, sequence = shape.sequence;
  const bool kv = part == HeadPart::key || part == HeadPart::value;
  const std::int64_t count = kv ? piece.kv_heads : piece.kv_heads * group;
  std::int64_t first = kv ? piece.kv_head : piece.kv_head * group;
  if (part == HeadPart::statistics) {  // [batch, heads, sequence]: dense, as cuDNN wants it
    return {(piece.batch * shape.heads + first) * sequence,
            {piece.batches, count, sequence, 1},
            {count * sequence, sequence, 1, 1}};
  }
  if (part == HeadPart::key) first += shape.heads;
  if (part == HeadPart::value) first += shape.heads + shape.kv_heads;
  const std::int64_t width = part == HeadPart::out ? shape.out_width() : shape.qkv_width();
  return {piece.batch * sequence * width + first * shape.head_size,
          {piece.batches, count, sequence, shape.head_size},
          {sequence * width, shape.head_size, width, 1}};
}

}  // namespace zl::cuda
