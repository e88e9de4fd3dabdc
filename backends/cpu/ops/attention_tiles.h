// What the forward and the backward of attention share: head addresses, tiles in arithmetic type.
// Score tiles are kept transposed, [key][query], so that the softmax runs down the rows with one
// query per vector lane. Ownership: nothing. Threads: pure functions of their arguments.
#pragma once

#include <algorithm>

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

// Columns of one head inside the rows of qkv (query, key or value), out or their gradients.
struct HeadColumns {
  std::int64_t row_width, first;
};

inline HeadColumns query_columns(const AttentionShape& s, std::int64_t head) {
  return {s.qkv_width(), head * s.head_size};
}
inline HeadColumns key_columns(const AttentionShape& s, std::int64_t kv_head) {
  return {s.qkv_width(), (s.heads + kv_head) * s.head_size};
}
inline HeadColumns value_columns(const AttentionShape& s, std::int64_t kv_head) {
  return {s.qkv_width(), (s.heads + s.kv_heads + kv_head) * s.head_size};
}
inline HeadColumns output_columns(const AttentionShape& s, std::int64_t head) {
  return {s.out_width(), head * s.head_size};
}

// tile[count][stride] = factor * rows [row, row + count) of one head, zero in columns >= width.
template <class T, class A>
void load_rows(const TensorView& view, HeadColumns head, std::int64_t row, std::int64_t count,
               std::int64_t width, std::int64_t stride, A factor, A* __restrict tile) {
  for (std::int64_t r = 0; r < count; ++r) {
    const T* __restrict from = view.as<const T>() + (row + r) * head.row_width + head.first;
    A* __restrict to = tile + r * stride;
    for (std::int64_t d = 0; d < width; ++d) to[d] = factor * widen<A>(from[d]);
    std::fill(to + width, to + stride, A{0});
  }
}

template <class T, class A>
void store_rows(const TensorView& view, HeadColumns head, std::int64_t row, std::int64_t count,
                std::int64_t width, std::int64_t stride, A factor, const A* __restrict tile) {
  for (std::int64_t r = 0; r < count; ++r) {
    T* __restrict to = view.as<T>() + (row + r) * head.row_width + head.first;
    const A* __restrict from = tile + r * stride;
    for (std::int64_t d = 0; d < width; ++d) to[d] = narrow<T>(factor * from[d]);
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
void multiply_block(LeftOperand<A> a, std::int64_t rows, const A* b, std::int64_t depth,
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
void dropout_tile(const DropoutSpec& spec, std::int64_t plane, std::int64_t sequence,
                  std::int64_t query, std::int64_t queries, std::int64_t key, std::int64_t keys,
                  std::int64_t stride, A* factors) {
  A row[kTile];
  for (std::int64_t q = 0; q < queries; ++q) {
    std::fill(row, row + keys, A{1});
    const std::int64_t index = (plane * sequence + query + q) * sequence + key;
    apply_dropout(spec, static_cast<std::uint64_t>(index), keys, row);
    for (std::int64_t k = 0; k < keys; ++k) factors[k * stride + q] = row[k];
  }
}

}  // namespace zl::cpu
