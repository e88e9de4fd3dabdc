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

  // Of head `plane` `count` queries from `first` on, transposed as `lanes`.
  void load(std::int64_t plane, std::int64_t first, std::int64_t count, std::int64_t lanes) {
    const std::int64_t head = plane % op_.shape.heads;
    const std::int64_t row = plane / op_.shape.heads * op_.shape.sequence + first;
    load_rows<T>(head_columns(op_.qkv.q, head, width_), row, count, width_, padded_,
                 static_cast<A>(op_.scale), queries_);
    load_rows<T>(output_columns(op_.dout, head, width_), row, count, width_, padded_, Unscaled{},
                 dout_);
    for (A* each : {queries_, dout_})
      std::fill(each + count * padded_, each + lanes * padded_, A{0});
    transpose(queries_, padded_, queries_t_, lanes, lanes, width_);
    transpose(dout_, padded_, dout_t_, lanes, lanes, width_);
    const std::int64_t at = plane * op_.shape.sequence + first;
    std::copy_n(op_.lse.as<const A>() + at, count, lse_);
    std::fill(lse_ + count, lse_ + lanes, A{0});
    sum_deltas<T>(output_columns(op_.out, head, width_), row, count, width_, dout_, padded_,
                  delta_);
    std::fill(delta_ + count, delta_ + lanes, A{0});
    std::copy_n(delta_, count, op_.delta.as<A>() + at);
  }

  const A* queries() const { return queries_; }  // scaled
  const A* dout() const { return dout_; }
  const A* queries_t() const { return queries_t_; }
  const A* dout_t() const { return dout_t_; }
  const A* lse(std::int64_t query) const { return lse_ + query; }
  const A* delta(std::int64_t query) const { return delta_ + query; }

 private:
  const AttentionBackward& op_;
  std::int64_t width_, padded_;
  A *queries_, *dout_;      // [kTile][padded]
  A *queries_t_, *dout_t_;  // [width][lanes]
  A lse_[kTile], delta_[kTile];
};

}  // namespace zl::cpu
