// What attention's backward holds of one kv head, tile by tile of keys: keys, values and their
// gradients, from the first query that sees one of them to the last. Few tiles are there at once
// where few blocks exist, and their places, used over and over, stay in the cache.
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
    A *keys = nullptr, *values, *dkeys, *dvalues;  // [kTile][padded]
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
        tiles_(static_cast<std::size_t>(round_up(op.shape.key_count(), kTile) / kTile)) {}

  // Of which the scratch has to begin.
  std::int64_t elements() const { return std::ssize(tiles_) * kPlace * padded_; }
  void use(A* scratch) { unused_ = scratch; }

  Place& at(std::int64_t tile) {
    Place& place = tiles_[static_cast<std::size_t>(tile)].place;
    if (place.keys == nullptr) load(tile, place);
    return place;
  }

  // Rows [key, key + rows), where they are held.
  void look_ahead(std::int64_t key, std::int64_t rows, RowsAhead& ahead) const {
    const Place& place = tiles_[static_cast<std::size_t>(key / kTile)].place;
    if (place.keys == nullptr) return;
    const auto bytes = padded_ * static_cast<std::int64_t>(sizeof(A));
    for (const A* each : {place.keys, place.values, place.dkeys, place.dvalues}) {
      ahead.add(each + key % kTile * padded_, rows, bytes, bytes);
    }
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
    store_rows<T>(head_columns(op_.dqkv.k, kv_head_, width), first, rows(tile), width, padded_,
                  A{1}, place.dkeys);
    store_rows<T>(head_columns(op_.dqkv.v, kv_head_, width), first, rows(tile), width, padded_,
                  A{1}, place.dvalues);
    free_.push_back(place.keys);
  }
  void store_rest() {
    for (std::int64_t tile = 0; tile < std::ssize(tiles_); ++tile) store(tile);
  }

 private:
  static constexpr unsigned kAll = (1u << BlockTable::kBits) - 1;
  static constexpr std::int64_t kPlace = 4 * kTile;  // rows of a place

  struct Tile {
    Place place = {};
    bool is_stored = false;
  };

  std::int64_t rows(std::int64_t tile) const {
    return std::min(kTile, op_.shape.key_count() - tile * kTile);
  }

  void load(std::int64_t tile, Place& place) {
    if (free_.empty()) {
      place.keys = std::exchange(unused_, unused_ + kPlace * padded_);
    } else {
      place.keys = free_.back();
      free_.pop_back();
    }
    place.values = place.keys + kTile * padded_;
    place.dkeys = place.values + kTile * padded_;
    place.dvalues = place.dkeys + kTile * padded_;
    const std::int64_t width = op_.shape.head_size, count = rows(tile), first = row_ + tile * kTile;
    load_rows<T>(head_columns(op_.qkv.k, kv_head_, width), first, count, width, padded_, A{1},
                 place.keys);
    load_rows<T>(head_columns(op_.qkv.v, kv_head_, width), first, count, width, padded_, A{1},
                 place.values);
    if (count == kTile) return;
    for (A* each : {place.keys, place.values}) {
      std::fill(each + count * padded_, each + kTile * padded_, A{0});
    }
  }

  const AttentionBackward& op_;
  std::int64_t kv_head_, row_, padded_;
  std::vector<Tile> tiles_;
  std::vector<A*> free_;
  A* unused_ = nullptr;
};

}  // namespace zl::cpu
