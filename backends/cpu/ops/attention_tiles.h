// What the forward and the backward of attention share: head addresses, tiles in arithmetic type.
// Score tiles are kept transposed, [key][query], so that the softmax runs down the rows with one
// query per vector lane. Ownership: nothing. Threads: pure functions of their arguments.
#pragma once

#include <algorithm>
#include <type_traits>

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/random_fill.h"
#include "backends/cpu/ops/tile.h"
#include "core/ops/attention.h"
#include "core/ops/dropout_spec.h"

namespace zl::cpu {

inline constexpr std::int64_t kTile = 64;  // queries and keys per tile
inline constexpr int kTileRows = kVectorBytes == 64 ? 8 : 4;
template <class A>
inline constexpr std::int64_t kTileColumns = 2 * kLanes<A>;  // granule of padded widths

// One head's columns in the rows of a matrix.
struct HeadColumns {
  const TensorView& matrix;
  std::int64_t row_width, first;
};

inline HeadColumns head_columns(const ColumnsView& view, std::int64_t head, std::int64_t width) {
  return {view.matrix, view.stride(), view.first + head * width};
}
inline HeadColumns output_columns(const TensorView& out, std::int64_t head, std::int64_t width) {
  return {out, out.columns(), head * width};
}

// The band of sequence `batch`.
inline KeyBand band_of(const AttentionMask& mask, const AttentionShape& shape, std::int64_t batch) {
  KeyBand band = mask.band(shape.key_count());
  if (!mask.lengths.empty()) {
    const std::int64_t length = mask.lengths.as<const std::int32_t>()[batch];
    band.limit = std::clamp<std::int64_t>(length, 0, band.limit);
  }
  return band;
}

// The keys that one tile of queries, the first at `position`, sees: whole tiles from `begin`.
struct TileKeys {
  std::int64_t begin, end;

  TileKeys(const KeyBand& band, std::int64_t position, std::int64_t queries)
      : begin(band.begin(position) / kTile * kTile), end(band.end(position + queries - 1)) {}
};

// Which lanes of queries see a key of a tile. Tiles away from the band's edges are seen whole.
struct TileMask {
  std::int64_t above, below;  // lane of key k: at least k - above, at most k + below
  bool whole, diagonal;       // diagonal: lane and key count the same position

  TileMask(const KeyBand& band, std::int64_t position, std::int64_t queries, std::int64_t key,
           std::int64_t keys)
      : above(position + band.ahead - key),
        below(key - position + band.behind),
        whole(keys - 1 <= above && queries - 1 <= below),
        diagonal(above == 0) {}

  std::int64_t first(std::int64_t k, std::int64_t lanes) const {
    return std::clamp<std::int64_t>(k - above, 0, lanes);
  }
  std::int64_t last(std::int64_t k, std::int64_t lanes) const {  // one past it
    return std::clamp<std::int64_t>(k + below + 1, first(k, lanes), lanes);
  }
};

// The factor of what stays as it is.
struct Unscaled {};
template <class A, class V>
[[gnu::always_inline]] inline V scaled(A factor, V values) {
  if constexpr (std::is_same_v<A, Unscaled>) {
    return values;
  } else {
    return factor * values;
  }
}

// tile[count][stride] = factor * rows [row, row + count) of one head, zero in columns >= width.
template <class T, class A, class Factor>
void load_rows(const HeadColumns& head, std::int64_t row, std::int64_t count, std::int64_t width,
               std::int64_t stride, Factor factor, A* __restrict tile) {
  const std::int64_t step = head.row_width;
  const T* __restrict from = head.matrix.as<const T>() + row * step + head.first;
  A* __restrict to = tile;
  for (std::int64_t r = 0; r < count; ++r, from += step, to += stride) {
    std::int64_t d = 0;
    for (; d + 2 * kLanes<A> <= width; d += 2 * kLanes<A>) {  // one by one, GCC calls memcpy
      const Vector<A> low = load_widened<A>(from + d);
      const Vector<A> high = load_widened<A>(from + d + kLanes<A>);
      store_vector(to + d, scaled(factor, low));
      store_vector(to + d + kLanes<A>, scaled(factor, high));
    }
    for (; d < width; ++d) to[d] = scaled(factor, widen<A>(from[d]));
    for (; d < stride; ++d) to[d] = A{0};
  }
}

// The other way round.
template <class T, class A>
void store_rows(const HeadColumns& head, std::int64_t row, std::int64_t count, std::int64_t width,
                std::int64_t stride, A factor, const A* __restrict tile) {
  const std::int64_t step = head.row_width;
  T* __restrict to = head.matrix.as<T>() + row * step + head.first;
  const A* __restrict from = tile;
  for (std::int64_t r = 0; r < count; ++r, to += step, from += stride) {
    std::int64_t d = 0;
    for (; d + kLanes<A> <= width; d += kLanes<A>) {
      if constexpr (std::is_same_v<T, A>) {
        store_vector(to + d, factor * load_vector(from + d));
      } else {
        for (std::int64_t i = d; i < d + kLanes<A>; ++i) to[i] = narrow<T>(factor * from[i]);
      }
    }
    for (; d < width; ++d) to[d] = narrow<T>(factor * from[d]);
  }
}

// deltas[count] = rowsum(gradients * rows of the output), of gradients[count][stride]: what the
// softmax's backward subtracts.
template <class T, class A>
void sum_deltas(const HeadColumns& out, std::int64_t row, std::int64_t count, std::int64_t width,
                const A* gradients, std::int64_t stride, A* deltas) {
  const T* of = out.matrix.as<const T>() + row * out.row_width + out.first;
  for (std::int64_t q = 0; q < count; ++q, of += out.row_width, gradients += stride) {
    deltas[q] = lane_sum<A>(width, [&](std::int64_t d) { return gradients[d] * widen<A>(of[d]); });
  }
}

// Which part of a product matters in a tile on the diagonal, where keys after the query are masked.
enum class Part {
  all,
  rows_to_column,  // of c: scores, keys x queries
  depth_to_row,    // of the sums: queries x keys times keys x width
  depth_from_row,  // of the sums: keys x queries times queries x width
};

// c[rows, columns] (+)= a[rows, depth] b[depth, columns]: rows a multiple of kTileRows, columns of
// kTileColumns; c's rows are b's stride apart. What `part` leaves out is not computed.
template <class A>
void multiply_block(const LeftOperand<A>& a, std::int64_t rows, const A* b, std::int64_t depth,
                    std::int64_t columns, A* c, bool accumulate, Part part = Part::all) {
  for (std::int64_t j = 0; j < columns; j += kTileColumns<A>) {
    for (std::int64_t i = 0; i < rows; i += kTileRows) {
      if (part == Part::rows_to_column && i >= j + kTileColumns<A>) break;
      const std::int64_t from = part == Part::depth_from_row ? std::min(i, depth) : 0;
      const std::int64_t to = part == Part::depth_to_row ? std::min(i + kTileRows, depth) : depth;
      const A* left = a.data + i * a.row_stride + from * a.k_stride;
      multiply_tile<A, kTileRows, 2>({left, a.row_stride, a.k_stride}, b + from * columns + j,
                                     columns, to - from, c + i * columns + j, columns, accumulate);
    }
  }
}

// factors[key][query] of dropout for the tile at (query, key) of head `plane` = b heads + head.
template <class A>
void dropout_tile(const DropoutSpec& spec, std::int64_t plane, const AttentionShape& shape,
                  std::int64_t query, std::int64_t queries, std::int64_t key, std::int64_t keys,
                  std::int64_t stride, A* factors) {
  A row[kTile];
  const std::int64_t first_row = shape.global_plane(plane) * shape.sequence + query;
  for (std::int64_t q = 0; q < queries; ++q) {
    std::fill(row, row + keys, A{1});
    const std::int64_t index = (first_row + q) * shape.key_count() + key;
    apply_dropout(spec, static_cast<std::uint64_t>(index), keys, row);
    for (std::int64_t k = 0; k < keys; ++k) factors[k * stride + q] = row[k];
  }
}

}  // namespace zl::cpu
