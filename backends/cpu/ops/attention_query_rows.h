// What attention's backward reads of a tile of queries of one head: the queries and the gradients
// of their outputs, by rows and transposed, and what the softmax's backward takes from each.
// Ownership: refers to the op and to scratch that the caller keeps. Threads: one.
#pragma once

#include "backends/cpu/ops/attention_tiles.h"

namespace zl::cpu {

template <class T>
class QueryRows {
 public:
  using A = Arithmetic<T>;

  QueryRows(const AttentionBackward& op, std::int64_t padded)
      : op_(op), width_(op.shape.head_size), padded_(padded) {}

  static std::int64_t elements(std::int64_t width, std::int64_t padded) {
    return kTile * (2 * padded + 2 * width);
  }
  void use(A* scratch) {
    queries_ = scratch, dout_ = queries_ + kTile * padded_;
    queries_t_ = dout_ + kTile * padded_, dout_t_ = queries_t_ + kTile * width_;
  }

  // Of head `plane` queries [begin, begin + count) of the tile at `first`, transposed `lanes` at a
  // time.
  void load(std::int64_t plane, std::int64_t first, std::int64_t begin, std::int64_t count,
            std::int64_t lanes) {
    const std::int64_t head = plane % op_.shape.heads;
    const std::int64_t row = plane / op_.shape.heads * op_.shape.sequence + first + begin;
    A *queries = queries_ + begin * padded_, *dout = dout_ + begin * padded_;
    load_rows<T>(head_columns(op_.qkv.q, head, width_), row, count, width_, padded_,
                 static_cast<A>(op_.scale), queries);
    load_rows<T>(output_columns(op_.dout, head, width_), row, count, width_, padded_, A{1}, dout);
    const std::int64_t end = round_up(count, lanes);
    std::fill(queries + count * padded_, queries + end * padded_, A{0});
    std::fill(dout + count * padded_, dout + end * padded_, A{0});
    for (std::int64_t q = 0; q < end; q += lanes) {
      const std::int64_t to = (begin + q) * width_;
      transpose(queries + q * padded_, padded_, queries_t_ + to, lanes, lanes, width_);
      transpose(dout + q * padded_, padded_, dout_t_ + to, lanes, lanes, width_);
    }
    const std::int64_t at = plane * op_.shape.sequence + first + begin;
    std::copy_n(op_.lse.as<const A>() + at, count, lse_ + begin);
    std::fill(lse_ + begin + count, lse_ + begin + end, A{0});
  }

  // delta = rowsum(dout * out) of the same queries: what the softmax's backward subtracts.
  void load_delta(std::int64_t plane, std::int64_t first, std::int64_t begin, std::int64_t count,
                  std::int64_t lanes) {
    const HeadColumns of = output_columns(op_.out, plane % op_.shape.heads, width_);
    const std::int64_t row = plane / op_.shape.heads * op_.shape.sequence + first + begin;
    const T* out = op_.out.as<const T>() + row * of.row_width + of.first;
    A* delta = delta_ + begin;
    for (std::int64_t q = 0; q < count; ++q, out += of.row_width) {
      const A* dout = dout_ + (begin + q) * padded_;
      delta[q] = lane_sum<A>(width_, [&](std::int64_t d) { return dout[d] * widen<A>(out[d]); });
    }
    std::fill(delta + count, delta + round_up(count, lanes), A{0});
    std::copy_n(delta, count, op_.delta.as<A>() + plane * op_.shape.sequence + first + begin);
  }

  const A* queries(std::int64_t query) const { return queries_ + query * padded_; }  // scaled
  const A* dout(std::int64_t query) const { return dout_ + query * padded_; }
  // [width][lanes] of the lanes from `query` on.
  const A* queries_t(std::int64_t query) const { return queries_t_ + query * width_; }
  const A* dout_t(std::int64_t query) const { return dout_t_ + query * width_; }
  const A* lse(std::int64_t query) const { return lse_ + query; }
  const A* delta(std::int64_t query) const { return delta_ + query; }

 private:
  const AttentionBackward& op_;
  std::int64_t width_, padded_;
  A *queries_, *dout_;      // [kTile][padded]
  A *queries_t_, *dout_t_;  // [kTile / lanes][width][lanes]
  A lse_[kTile], delta_[kTile];
};

}  // namespace zl::cpu
