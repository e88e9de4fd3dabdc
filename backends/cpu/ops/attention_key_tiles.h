// What attention's backward holds of one kv head, tile by tile of keys: their gradients, and keys
// and values themselves.
// Ownership: refers to the op and to scratch that the caller keeps. Threads: one.
#pragma once

#include <utility>
#include <vector>

#include "backends/cpu/ops/attention_tiles.h"

namespace zl::cpu {

template <class T>
class KeyTiles {
 public:
  using A = Arithmetic<T>;

  struct Place {
    A *dkeys = nullptr, *dvalues, *keys, *values;  // [kTile][padded]
  };

  KeyTiles(const AttentionBackward& op, std::int64_t batch, std::int64_t kv_head,
           std::int64_t padded)
      : op_(op),
        kv_head_(kv_head),
        row_(batch * op.shape.key_count()),
        padded_(padded),
        tiles_(static_cast<std::size_t>(round_up(op.shape.key_count(), kTile) / kTile)) {}

  // Of which the scratch has to begin.
  std::int64_t elements() const { return std::ssize(tiles_) * 4 * kTile * padded_; }
  void use(A* scratch) { unused_ = scratch; }

  const Place& at(std::int64_t tile) {
    Place& place = tiles_[static_cast<std::size_t>(tile)];
    if (place.dkeys == nullptr) begin(tile, place);
    return place;
  }

  void store() {
    for (std::int64_t tile = 0; tile < std::ssize(tiles_); ++tile) {
      const Place& place = at(tile);
      const std::int64_t width = op_.shape.head_size, first = row_ + tile * kTile;
      store_rows<T>(head_columns(op_.dqkv.k, kv_head_, width), first, rows(tile), width, padded_,
                    A{1}, place.dkeys);
      store_rows<T>(head_columns(op_.dqkv.v, kv_head_, width), first, rows(tile), width, padded_,
                    A{1}, place.dvalues);
    }
  }

 private:
  std::int64_t rows(std::int64_t tile) const {
    return std::min(kTile, op_.shape.key_count() - tile * kTile);
  }

  void begin(std::int64_t tile, Place& place) {
    const auto take = [&] { return std::exchange(unused_, unused_ + kTile * padded_); };
    place.dkeys = take(), place.dvalues = take(), place.keys = take(), place.values = take();
    for (A* each : {place.dkeys, place.dvalues}) std::fill_n(each, kTile * padded_, A{0});
    load(op_.qkv.k, tile, place.keys);
    load(op_.qkv.v, tile, place.values);
  }
  void load(const ColumnsView& of, std::int64_t tile, A* to) const {
    const std::int64_t width = op_.shape.head_size, count = rows(tile);
    load_rows<T>(head_columns(of, kv_head_, width), row_ + tile * kTile, count, width, padded_,
                 Unscaled{}, to);
    std::fill(to + count * padded_, to + kTile * padded_, A{0});
  }

  const AttentionBackward& op_;
  std::int64_t kv_head_, row_, padded_;
  std::vector<Place> tiles_;
  A* unused_ = nullptr;
};

}  // namespace zl::cpu
