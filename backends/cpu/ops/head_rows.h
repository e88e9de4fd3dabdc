// One head's rows of a matrix, where attention over blocks puts what it has summed up, straight
// from registers: stores that lie between products cost next to nothing, those of a whole tile at
// once fill the processor's queue.
// Ownership: refers to the matrix. Threads: different rows may be put at once.
#pragma once

#include "backends/cpu/ops/attention_tiles.h"

namespace zl::cpu {

template <class T>
class HeadRows {
 public:
  using A = Arithmetic<T>;
  using Pair = Vector<A>[2];  // kTileColumns

  // Few blocks fill a matrix faster than memory takes it through the caches, which would read it
  // first: where they do not hold it, whole lines go past them; end_of_streams() is the caller's.
  HeadRows(const HeadColumns& head, std::int64_t width)
      : first_(head.matrix.as<T>() + head.first),
        row_width_(head.row_width),
        width_(width),
        streams_(head.matrix.bytes() > kCacheBytes && width % kTileColumns<A> == 0 &&
                 reinterpret_cast<std::uintptr_t>(first_) % kVectorBytes == 0 &&
                 row_width_ * kSize % kVectorBytes == 0) {}

  // Columns [column, column + kTileColumns) of a row, those that it has, = factor * values.
  [[gnu::always_inline]] void put(std::int64_t row, std::int64_t column, A factor,
                                  const Pair& values) const {
    constexpr auto kColumns = static_cast<std::int64_t>(kTileColumns<A>);
    T* to = first_ + row * row_width_ + column;
    alignas(kVectorBytes) T part[kColumns];
    scale(factor, values, part);
    if (streams_) {
      for (std::int64_t i = 0; i < kColumns; i += kElements) stream_vector(to + i, part + i);
    } else if (column + kColumns <= width_) {
      std::memcpy(to, part, sizeof(part));
    } else {
      std::copy_n(part, std::max<std::int64_t>(width_ - column, 0), to);
    }
  }

  // Rows [row, row + count) = those of tile[count][padded].
  void put_rows(std::int64_t row, std::int64_t count, std::int64_t padded, const A* tile) const {
    for (std::int64_t r = 0; r < count; ++r, tile += padded) {
      for (std::int64_t d = 0; d < padded; d += kTileColumns<A>) {
        put(row + r, d, A{1}, {load_vector(tile + d), load_vector(tile + d + kLanes<A>)});
      }
    }
  }
  void put_zeros(std::int64_t row, std::int64_t count) const {
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::int64_t d = 0; d < width_; d += kTileColumns<A>) put(row + r, d, A{0}, {});
    }
  }

 private:
  static constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kElements = kVectorBytes / kSize;

  [[gnu::always_inline]] static void scale(A factor, const Pair& values, T* part) {
    if constexpr (std::is_same_v<T, A>) {
      for (int v = 0; v < 2; ++v) store_vector(part + v * kLanes<A>, factor * values[v]);
    } else {
      alignas(kVectorBytes) A scaled[kTileColumns<A>];
      for (int v = 0; v < 2; ++v) store_vector(scaled + v * kLanes<A>, factor * values[v]);
      for (std::int64_t i = 0; i < kTileColumns<A>; ++i) part[i] = narrow<T>(scaled[i]);
    }
  }

  T* first_;
  std::int64_t row_width_, width_;
  bool streams_;
};

}  // namespace zl::cpu
