// One head's rows of a matrix, where attention over blocks puts what it has summed up, straight
// from registers: stores that lie between products cost next to nothing, those of a whole tile at
// once fill the processor's queue.
// Ownership: refers to the matrix. Threads: one; others may put different rows.
#pragma once

#include "backends/cpu/ops/attention_tiles.h"
#include "core/ops/block_table.h"

namespace zl::cpu {

template <class T>
class HeadRows {
 public:
  using A = Arithmetic<T>;
  using Pair = Vector<A>[2];  // kTileColumns
  static constexpr std::int64_t kRowsAtOnce = BlockTable::kGranule;

  // Few blocks fill a matrix faster than memory takes it through the caches, which would read it
  // first: where they do not hold it, whole lines go past them; end_of_streams() is the caller's.
  HeadRows(const HeadColumns& head, std::int64_t width)
      : first_(head.matrix.as<T>() + head.first),
        row_width_(head.row_width),
        width_(width),
        streams_(kPairBytes * kPairs % kLineBytes == 0 && 2 * head.matrix.bytes() > cache_bytes() &&
                 width % (kTileColumns<A> * kPairs) == 0 &&
                 reinterpret_cast<std::uintptr_t>(first_) % kAlignment == 0 &&
                 row_width_ * kSize % kAlignment == 0) {}

  // Columns [column, column + kTileColumns) of Rows rows, those that they have, = factors[Rows] *
  // values. A row's columns come in ascending order, and those of at most kRowsAtOnce rows that
  // follow each other in turn.
  template <int Rows>
  [[gnu::always_inline]] void put(std::int64_t row, std::int64_t column, const A* factors,
                                  const Pair (&values)[Rows]) {
    T* to = first_ + row * row_width_ + column;
    const auto each = [&](const auto& take) {
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const Vector<A> factor = broadcast(factors[r]);
        Part parts[kParts];
        narrow_all({factor * values[r][0], factor * values[r][1]}, parts);
        take(r, to + r * row_width_, parts);
      }
    };
    if (streams_) {
      each([&](int r, T* at, const Part* parts) { stream(row + r, column, at, parts); });
    } else if (column + kTileColumns<A> <= width_) {
      each([&](int, T* at, const Part* parts) { std::memcpy(at, parts, kPairBytes); });
    } else if (column < width_) {
      const auto bytes = static_cast<std::size_t>((width_ - column) * kSize);
      each([&](int, T* at, const Part* parts) { std::memcpy(at, parts, bytes); });
    }
  }

  // Rows [row, row + count) = factor * those of tile[count][padded].
  void put_rows(std::int64_t row, std::int64_t count, std::int64_t padded, A factor,
                const A* tile) {
    for (std::int64_t r = 0; r < count; ++r, tile += padded) {
      for (std::int64_t d = 0; d < padded; d += kTileColumns<A>) {
        put<1>(row + r, d, &factor, {{load_vector(tile + d), load_vector(tile + d + kLanes<A>)}});
      }
    }
  }
  void put_zeros(std::int64_t row, std::int64_t count) {
    const A zero{0};
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::int64_t d = 0; d < width_; d += kTileColumns<A>) put<1>(row + r, d, &zero, {});
    }
  }

 private:
  static constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kElements = kVectorBytes / kSize;
  // A pair in memory's type.
  using Part = Vector<std::conditional_t<std::is_same_v<T, A>, A, std::uint16_t>>;
  static constexpr std::int64_t kParts = kTileColumns<A> / kElements;
  static constexpr std::int64_t kPairBytes = kTileColumns<A> * kSize;
  // That are streamed together: memory takes whole lines.
  static constexpr std::int64_t kPairs = 2 * kPairBytes == kLineBytes ? 2 : 1;
  static constexpr std::int64_t kAlignment = kPairs == 1 ? kVectorBytes : kLineBytes;

  [[gnu::always_inline]] void stream(std::int64_t row, std::int64_t column, T* to,
                                     const Part* parts) {
    if constexpr (kPairs == 2) {
      Part* begin = begins_[row % kRowsAtOnce];
      if (column / kTileColumns<A> % 2 == 0) {
        std::memcpy(begin, parts, kPairBytes);
        return;
      }
      for (std::int64_t i = 0; i < kParts; ++i) {
        stream_vector(to - kTileColumns<A> + i * kElements, &begin[i]);
      }
    }
    for (std::int64_t i = 0; i < kParts; ++i) stream_vector(to + i * kElements, &parts[i]);
  }

  [[gnu::always_inline]] static void narrow_all(const Pair& values, Part* parts) {
    if constexpr (std::is_same_v<T, A>) {
      parts[0] = values[0], parts[1] = values[1];
    } else if constexpr (std::is_same_v<T, bfloat16>) {
      parts[0] = to_bfloat16_bits(values[0], values[1]);
    } else {
      T narrowed[kTileColumns<A>];
      for (std::int64_t i = 0; i < kTileColumns<A>; ++i) {
        narrowed[i] = narrow<T>(values[i / kLanes<A>][i % kLanes<A>]);
      }
      std::memcpy(parts, narrowed, sizeof(narrowed));
    }
  }

  T* first_;
  std::int64_t row_width_, width_;
  bool streams_;
  Part begins_[kPairs == 2 ? kRowsAtOnce : 1][kParts];  // of lines
};

}  // namespace zl::cpu
