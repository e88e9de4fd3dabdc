// The gradients of keys and values of one kv head over blocks, a granule at a time: what was summed
// up waits from the first tile of queries that sees one of its keys to the last, in few places that
// are used over and over and stay in the cache.
// Ownership: refers to the op and to scratch that the caller keeps. Threads: one.
#pragma once

#include <vector>

#include "backends/cpu/ops/attention_granules.h"

namespace zl::cpu {

template <class T>
class KeyGradients {
 public:
  using A = Arithmetic<T>;

  // factor: of what is summed up for keys.
  KeyGradients(const AttentionBackward& op, std::int64_t batch, std::int64_t kv_head,
               std::int64_t padded, A factor)
      : keys_(head_columns(op.dqkv.k, kv_head, op.shape.head_size), op.shape.head_size),
        values_(head_columns(op.dqkv.v, kv_head, op.shape.head_size), op.shape.head_size),
        row_(batch * op.shape.sequence),
        padded_(padded),
        granules_(static_cast<std::size_t>(op.shape.sequence / kGranule)) {
    std::fill(key_factors_, key_factors_ + kGranule, factor);
    std::fill(ones_, ones_ + kGranule, A{1});
  }

  // Of which the scratch has to begin.
  std::int64_t elements() const { return std::ssize(granules_) * 2 * kGranule * padded_; }
  void use(A* scratch) { unused_ = scratch; }

  struct Sums {
    GranuleSums<T> keys, values;
  };
  // What the next products for the granule are to be given to. ends: none come after them.
  Sums next(std::int64_t granule, bool ends) {
    Granule& of = granules_[static_cast<std::size_t>(granule)];
    const bool adds = of.waiting != nullptr;
    if (!adds) of.waiting = take();
    A* waiting = of.waiting;
    if (ends) {
      of.is_stored = true;
      free_.push_back(waiting);  // it is read before the next one begins
    }
    const std::int64_t first = row_ + granule * kGranule;
    return {{waiting, padded_, adds, ends, keys_, first, key_factors_},
            {waiting + kGranule * padded_, padded_, adds, ends, values_, first, ones_}};
  }

  // What waits of the granule.
  void look_ahead(std::int64_t granule, RowsAhead& ahead) const {
    const A* waiting = granules_[static_cast<std::size_t>(granule)].waiting;
    const auto bytes = 2 * kGranule * padded_ * static_cast<std::int64_t>(sizeof(A));
    if (waiting != nullptr) ahead.add(waiting, 1, bytes, bytes);
  }

  // All that no query has ended.
  void finish() {
    for (std::int64_t granule = 0; granule < std::ssize(granules_); ++granule) {
      const Granule& of = granules_[static_cast<std::size_t>(granule)];
      const std::int64_t first = row_ + granule * kGranule;
      if (of.is_stored) continue;
      if (of.waiting == nullptr) {
        keys_.put_zeros(first, kGranule), values_.put_zeros(first, kGranule);
      } else {
        keys_.put_rows(first, kGranule, padded_, key_factors_[0], of.waiting);
        values_.put_rows(first, kGranule, padded_, A{1}, of.waiting + kGranule * padded_);
      }
    }
  }

 private:
  struct Granule {
    A* waiting = nullptr;  // [2][kGranule][padded]
    bool is_stored = false;
  };

  A* take() {
    if (free_.empty()) return std::exchange(unused_, unused_ + 2 * kGranule * padded_);
    A* place = free_.back();
    free_.pop_back();
    return place;
  }

  HeadRows<T> keys_, values_;
  std::int64_t row_, padded_;
  std::vector<Granule> granules_;
  std::vector<A*> free_;
  A* unused_ = nullptr;
  A key_factors_[kGranule], ones_[kGranule];
};

}  // namespace zl::cpu
