// What attention's backward holds of one kv head, tile by tile of keys: gradients, from the first
// query that sees one of them to the last, and keys and values, where tiles meet all of them. Few
// tiles are there at once where few blocks exist, and their places, used over and over, stay in the
// cache.
// Ownership: refers to the op and to scratch that the caller keeps. Threads: one.
#pragma once

#include <utility>
#include <vector>

#include "backends/cpu/ops/attention_tiles.h"
#include "backends/cpu/ops/rows_ahead.h"
#include "core/ops/block_table.h"

namespace zl::cpu {

template <class T>
class KeyTiles {
 public:
  using A = Arithmetic<T>;

  struct Place {
    A *dkeys = nullptr, *dvalues, *keys, *values;  // [kTile][padded]; these two not for blocks
    unsigned fresh = kAll;  // a bit for each granule whose gradients nobody has written
    // Whether products are to be written to the granule's gradients, not added.
    bool is_first(std::int64_t row) {
      const unsigned bit = 1u << (row / BlockTable::kGranule);
      return (std::exchange(fresh, fresh & ~bit) & bit) != 0;
    }
  };

  KeyTiles(const AttentionBackward& op, std::int64_t batch, std::int64_t kv_head,
           std::int64_t padded)
      : op_(op),
        kv_head_(kv_head),
        row_(batch * op.shape.key_count()),
        padded_(padded),
        rows_((op.mask.has_blocks() ? 2 : 4) * kTile),
        tiles_(static_cast<std::size_t>(round_up(op.shape.key_count(), kTile) / kTile)) {}

  // Of which the scratch has to begin.
  std::int64_t elements() const { return std::ssize(tiles_) * rows_ * padded_; }
  void use(A* scratch) { unused_ = scratch; }

  Place& at(std::int64_t tile) {
    Place& place = tiles_[static_cast<std::size_t>(tile)].place;
    if (place.dkeys == nullptr) begin(tile, place);
    return place;
  }

  // Rows [key, key + rows), where they are held.
  void look_ahead(std::int64_t key, std::int64_t rows, RowsAhead& ahead) const {
    const Place& place = tiles_[static_cast<std::size_t>(key / kTile)].place;
    if (place.dkeys == nullptr) return;
    const auto bytes = padded_ * static_cast<std::int64_t>(sizeof(A));
    for (const A* each : {place.dkeys, place.dvalues}) {
      ahead.add(each + key % kTile * padded_, rows, bytes, bytes);
    }
  }

  // The place of the next tile, where none is left to use again.
  void look_ahead(RowsAhead& ahead) const {
    const auto bytes = rows_ * padded_ * static_cast<std::int64_t>(sizeof(A));
    if (free_.empty()) ahead.add(unused_, 1, bytes, bytes);
  }

  // Of which no query is left.
  void store(std::int64_t tile) {
    Tile& of = tiles_[static_cast<std::size_t>(tile)];
    if (std::exchange(of.is_stored, true)) return;
    Place& place = at(tile);
    for (std::int64_t row = 0; row < kTile; row += BlockTable::kGranule) {
      if (!place.is_first(row)) continue;
      for (A* each : {place.dkeys, place.dvalues}) {
        std::fill_n(each + row * padded_, BlockTable::kGranule * padded_, A{0});
      }
    }
    const std::int64_t width = op_.shape.head_size, first = row_ + tile * kTile;
    store_gradients<T>(op_, head_columns(op_.dqkv.k, kv_head_, width), first, rows(tile), padded_,
                       A{1}, place.dkeys);
    store_gradients<T>(op_, head_columns(op_.dqkv.v, kv_head_, width), first, rows(tile), padded_,
                       A{1}, place.dvalues);
    free_.push_back(place.dkeys);
  }
  void store_rest() {
    for (std::int64_t tile = 0; tile < std::ssize(tiles_); ++tile) store(tile);
    end_of_streams();
  }

 private:
  static constexpr unsigned kAll = (1u << BlockTable::kBits) - 1;

  struct Tile {
    Place place = {};
    bool is_stored = false;
  };

  std::int64_t rows(std::int64_t tile) const {
    return std::min(kTile, op_.shape.key_count() - tile * kTile);
  }

  void begin(std::int64_t tile, Place& place) {
    if (free_.empty()) {
      place.dkeys = std::exchange(unused_, unused_ + rows_ * padded_);
    } else {
      place.dkeys = free_.back();
      free_.pop_back();
    }
    place.dvalues = place.dkeys + kTile * padded_;
    if (op_.mask.has_blocks()) return;
    place.keys = place.dvalues + kTile * padded_;
    place.values = place.keys + kTile * padded_;
    load(op_.qkv.k, tile, place.keys);
    load(op_.qkv.v, tile, place.values);
  }
  void load(const ColumnsView& of, std::int64_t tile, A* to) const {
    const std::int64_t width = op_.shape.head_size, count = rows(tile);
    load_rows<T>(head_columns(of, kv_head_, width), row_ + tile * kTile, count, width, padded_,
                 A{1}, to);
    std::fill(to + count * padded_, to + kTile * padded_, A{0});
  }

  const AttentionBackward& op_;
  std::int64_t kv_head_, row_, padded_;
  std::int64_t rows_;  // of a place
  std::vector<Tile> tiles_;
  std::vector<A*> free_;
  A* unused_ = nullptr;
};

}  // namespace zl::cpu
