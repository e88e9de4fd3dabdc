// What attention's backward over blocks reads of a tile of queries of one head, a granule at a
// time: the queries and the gradients of their outputs, by rows and transposed, and what the
// softmax's backward takes from each. Ownership: refers to the op and to scratch that the caller
// keeps. Threads: one.
#pragma once

#include "backends/cpu/ops/attention_granules.h"
#include "backends/cpu/ops/attention_transpose.h"

namespace zl::cpu {

template <class T>
class GranuleRows {
 public:
  using A = Arithmetic<T>;

  GranuleRows(const AttentionBackward& op, std::int64_t padded)
      : op_(op),
        width_(op.shape.head_size),
        padded_(padded),
        scales_later_(is_power_of_two(op.scale) &&
                      rows_in_place<T>(head_columns(op.qkv.q, 0, width_), width_, padded).first) {}

  static std::int64_t elements(std::int64_t width, std::int64_t padded) {
    return kTile * (2 * padded + 2 * width);
  }
  void use(A* scratch) {
    copied_queries_ = scratch, copied_dout_ = copied_queries_ + kTile * padded_;
    queries_t_ = copied_dout_ + kTile * padded_, dout_t_ = queries_t_ + kTile * width_;
  }

  // What comes is of head `plane` and the tile of queries at `first`.
  void begin(std::int64_t plane, std::int64_t first) {
    head_ = plane % op_.shape.heads, row_ = plane / op_.shape.heads * op_.shape.sequence + first;
    place_ = plane * op_.shape.sequence + first;
    queries_ = {copied_queries_, padded_};
    if (scales_later_) {
      queries_ = rows_in_place<T>(head_columns(op_.qkv.q, head_, width_), width_, padded_);
      queries_.first = queries_.at(row_);
    }
    dout_ = rows_in_place<T>(output_columns(op_.dout, head_, width_), width_, padded_);
    is_copied_ = dout_.first == nullptr;
    dout_.first = is_copied_ ? copied_dout_ : dout_.at(row_);
  }

  // The granule from query `lane` of the tile on.
  void load(std::int64_t lane) {
    const HeadColumns q = head_columns(op_.qkv.q, head_, width_);
    const HeadColumns dout = output_columns(op_.dout, head_, width_);
    const auto scale = static_cast<A>(op_.scale);
    load_transposed<T>(q, row_ + lane, width_, scale, queries_t_ + lane * width_);
    load_transposed<T>(dout, row_ + lane, width_, Unscaled{}, dout_t_ + lane * width_);
    if (!scales_later_) {
      load_rows<T>(q, row_ + lane, kGranule, width_, padded_, scale,
                   copied_queries_ + lane * padded_);
    }
    if (is_copied_) {
      load_rows<T>(dout, row_ + lane, kGranule, width_, padded_, Unscaled{},
                   copied_dout_ + lane * padded_);
    }
    std::copy_n(op_.lse.as<const A>() + place_ + lane, kGranule, lse_ + lane);
  }

  void load_delta(std::int64_t lane) {
    sum_deltas<T>(output_columns(op_.out, head_, width_), row_ + lane, kGranule, width_, dout(lane),
                  dout_.stride, delta_ + lane);
    std::copy_n(delta_ + lane, kGranule, op_.delta.as<A>() + place_ + lane);
  }

  const A* queries(std::int64_t lane) const { return queries_.at(lane); }
  std::int64_t queries_stride() const { return queries_.stride; }
  // Of what is summed up of the queries: the scale where they are not scaled, which then is a power
  // of two, so that it may come later.
  A factor() const { return scales_later_ ? static_cast<A>(op_.scale) : A{1}; }
  const A* dout(std::int64_t lane) const { return dout_.at(lane); }
  std::int64_t dout_stride() const { return dout_.stride; }
  // [width][kGranule] of the lanes from `lane` on.
  const A* queries_t(std::int64_t lane) const { return queries_t_ + lane * width_; }
  const A* dout_t(std::int64_t lane) const { return dout_t_ + lane * width_; }
  const A* lse(std::int64_t lane) const { return lse_ + lane; }
  const A* delta(std::int64_t lane) const { return delta_ + lane; }

 private:
  const AttentionBackward& op_;
  std::int64_t width_, padded_;
  bool scales_later_;                 // queries
  A *copied_queries_, *copied_dout_;  // [kTile][padded]
  A *queries_t_, *dout_t_;            // [kGranules][width][kGranule]
  std::int64_t head_ = 0, row_ = 0, place_ = 0;
  FactorRows<A> queries_{}, dout_{};  // where they lie, else the copied ones
  bool is_copied_ = true;
  A lse_[kTile], delta_[kTile];
};

}  // namespace zl::cpu
