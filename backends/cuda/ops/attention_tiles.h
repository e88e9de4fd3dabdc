// What the attention kernels share: where heads lie, which block takes which tile, base-2
// exponentials and dropout factors. Attention has two sets of tile operations with one interface,
// MmaTiles (attention_mma.h, tensor cores) and FmaTiles (attention_fma.h, any type and width), and
// each kernel is written once over it. A set gives:
//   kTileRows, kTileColumns    of a block's score tile; kWidth: the head size it has room for
//   kRows, kRowLanes           rows of one thread; neighbouring lanes that share these rows
//   Source, Target             what points at elements in memory: read, written
//   Values<kColumns>           a thread's part of a [kTileRows, kColumns] matrix: at(r, c), kOwn
//   row(r), column(c)          where at(r, c) lies in the matrix
//   copy<kCount>, commit, wait rows of a head into a shared tile, zero past the end
//   multiply, accumulate       c = x y^T; sum += c y, MmaTiles with c rounded to the storage type;
//                              what a row of c does not meet may be no number: it is left out
//   store                      factor[r] * values into rows of a head
// Ownership: nothing. Threads: device code and its launchers.
#pragma once

#include <math.h>

#include <algorithm>

#include "backends/cuda/kernel/convert.h"
#include "backends/cuda/kernel/launch.h"
#include "backends/cuda/kernel/power_of_2.h"
#include "core/ops/attention.h"
#include "core/ops/dropout_spec.h"

namespace zl::cuda {

// Whether a row of c meets a row of y in accumulate, both by their places in their tiles: all do.
struct EveryRow {
  __device__ __forceinline__ bool operator()(int, int) const { return true; }
};

// Points at f32, bf16 or f16 and finds out which at every access: kernels that are not made for
// speed exist once for the three.
class AnyFloats {
 public:
  explicit AnyFloats(const TensorView& view) : data_(view.data), dtype_(view.dtype) {}

  __device__ __forceinline__ float load(std::int64_t i) const {
    if (dtype_ == DType::f32) return reinterpret_cast<const float*>(data_)[i];
    if (dtype_ == DType::bf16) return load_value(reinterpret_cast<const bfloat16*>(data_)[i]);
    return load_value(reinterpret_cast<const float16*>(data_)[i]);
  }
  __device__ __forceinline__ void store(std::int64_t i, float value) const {
    if (dtype_ == DType::f32) {
      reinterpret_cast<float*>(data_)[i] = value;
    } else if (dtype_ == DType::bf16) {
      reinterpret_cast<bfloat16*>(data_)[i] = store_value<bfloat16>(value);
    } else {
      reinterpret_cast<float16*>(data_)[i] = store_value<float16>(value);
    }
  }
  __device__ __forceinline__ AnyFloats operator+(std::int64_t elements) const {
    AnyFloats moved = *this;
    moved.data_ += elements * (dtype_ == DType::f32 ? 4 : 2);
    return moved;
  }

 private:
  std::byte* data_;
  DType dtype_;
};

// Rows [0, count) of one head of one sequence; `width` elements each, `stride` apart. Pointer: a
// plain one or AnyFloats.
template <class Pointer>
struct HeadRows {
  Pointer data;
  std::int64_t stride;
  int count, width;

  __device__ __forceinline__ Pointer at(int row) const { return data + row * stride; }
};

// ColumnsView, or a dense matrix, for kernels.
template <class Pointer>
struct Columns {
  Pointer data;  // of the first row's first element
  std::int64_t stride;
};

template <class Tiles>
Columns<typename Tiles::Source> read_columns(const ColumnsView& view) {
  return {Tiles::source({view.data(), view.matrix.dtype, {}}), view.stride()};
}
template <class Tiles>
Columns<typename Tiles::Target> written_columns(const ColumnsView& view) {
  return {Tiles::target({view.data(), view.matrix.dtype, {}}), view.stride()};
}
// From an element of the keys to the value's, in elements: one number where a second pointer would
// cost registers.
inline std::int64_t value_distance(const QkvViews& qkv) {
  const auto bytes =
      reinterpret_cast<std::intptr_t>(qkv.v.data()) - reinterpret_cast<std::intptr_t>(qkv.k.data());
  return bytes / static_cast<std::intptr_t>(size_of(qkv.dtype()));
}
inline ColumnsView all_columns(const TensorView& matrix) { return {matrix, 0, matrix.columns()}; }

// The sizes of AttentionShape and the heads' places in its tensors.
struct HeadLayout {
  int heads, kv_heads, group;  // group: query heads per kv head
  int sequence, keys, head_size;
  int all_heads, first_head;

  explicit HeadLayout(const AttentionShape& s)
      : heads(static_cast<int>(s.heads)),
        kv_heads(static_cast<int>(s.kv_heads)),
        group(static_cast<int>(s.heads / s.kv_heads)),
        sequence(static_cast<int>(s.sequence)),
        keys(static_cast<int>(s.key_count())),
        head_size(static_cast<int>(s.head_size)),
        all_heads(static_cast<int>(s.all_heads == 0 ? s.heads : s.all_heads)),
        first_head(static_cast<int>(s.first_head)) {}

  // AttentionShape::global_plane.
  __device__ std::int64_t global_plane(std::int64_t plane) const {
    return plane / heads * all_heads + first_head + plane % heads;
  }

  // A head of the queries, of the output or of their gradients.
  template <class Pointer>
  __device__ HeadRows<Pointer> query(const Columns<Pointer>& from, std::int64_t batch,
                                     int head) const {
    return rows(from, batch, head, sequence);
  }
  // A head of the keys, of the values or of their gradients.
  template <class Pointer>
  __device__ HeadRows<Pointer> key(const Columns<Pointer>& from, std::int64_t batch,
                                   int kv_head) const {
    return rows(from, batch, kv_head, keys);
  }
  // The same head of the values: rows as long, `distance` elements away.
  template <class Pointer>
  __device__ HeadRows<Pointer> value_of_key(const HeadRows<Pointer>& key,
                                            std::int64_t distance) const {
    return {key.data + distance, key.stride, key.count, key.width};
  }

 private:
  template <class Pointer>
  __device__ HeadRows<Pointer> rows(const Columns<Pointer>& from, std::int64_t batch, int head,
                                    int count) const {
    return {from.data + (batch * count * from.stride + std::int64_t{head} * head_size), from.stride,
            count, head_size};
  }
};

// x, but unknown to the compiler: what is computed from it stays where it is used instead of taking
// a register for the length of a loop.
__device__ __forceinline__ int recomputed(int x) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(x));
#endif
  return x;
}

// Which scores of a sequence count, in coordinates of the score matrix whose rows a block owns and
// whose columns stream past: low <= column - row <= high, and keys below the sequence's length.
// kKeys: rows are keys and columns queries; else the other way round.
template <bool kKeys>
struct ScoreBand {
  int low, high;
  const std::int32_t* lengths;  // of each sequence's keys; null: all count

  ScoreBand(const AttentionMask& mask, const AttentionShape& shape) : lengths(nullptr) {
    const KeyBand band = mask.band(shape.key_count());
    const std::int64_t at = shape.first_position;
    low = static_cast<int>(kKeys ? -band.ahead - at : at - band.behind);
    high = static_cast<int>(kKeys ? band.behind - at : at + band.ahead);
    if (!mask.lengths.empty()) lengths = mask.lengths.as<const std::int32_t>();
  }

  // Keys of a sequence that count.
  __device__ __forceinline__ int limit(const HeadLayout& layout, std::int64_t batch) const {
    return lengths == nullptr ? layout.keys : max(0, min(layout.keys, lengths[batch]));
  }
  // The columns [begin, end) that rows from `row` on meet, `begin` a multiple of `step`.
  __device__ __forceinline__ int begin(int row, int step) const {
    return max(0, row + low) / step * step;
  }
  __device__ __forceinline__ int end(const HeadLayout& layout, std::int64_t batch, int row,
                                     int rows) const {
    const int count = limit(layout, batch);
    const int most = !kKeys ? count : row < count ? layout.sequence : 0;
    return min(most, row + rows + high);
  }
  // Whether any score of this warp's rows in the tile counts.
  template <class Tiles>
  __device__ __forceinline__ bool meets(const Tiles& tiles, int row, int column) const {
    return column <= row + tiles.last_row() + high &&
           column + Tiles::kTileColumns > row + tiles.first_row() + low;
  }
  // Those that do not count become minus infinity, in passes of their own: most tiles need none.
  // Rows of keys that do not count are the caller's to clear. end: end() of the block.
  template <class Tiles, class Scores>
  __device__ __forceinline__ void apply(const Tiles& tiles, int end, int row, int column,
                                        Scores& scores) const {
    const int offset = recomputed(row - column), past = column + Tiles::kTileColumns;
    if (past - 1 > row + tiles.first_row() + high || (!kKeys && past > end)) {
      hide(tiles, scores, [&](int r, int c) {
        const int last = offset + tiles.row(r) + high;
        return tiles.column(c) > (kKeys ? last : min(last, end - 1 - column));
      });
    }
    if (column < row + tiles.last_row() + low) {
      hide(tiles, scores,
           [&](int r, int c) { return tiles.column(c) < offset + tiles.row(r) + low; });
    }
  }

 private:
  template <class Tiles, class Scores, class Hidden>
  __device__ __forceinline__ static void hide(const Tiles&, Scores& scores, const Hidden& hidden) {
#pragma unroll
    for (int r = 0; r < Tiles::kRows; ++r) {
#pragma unroll
      for (int c = 0; c < Scores::kOwn; ++c) {
        if (hidden(r, c)) scores.at(r, c) = static_cast<typename Tiles::Arithmetic>(-INFINITY);
      }
    }
  }
};

// Blocks in the order in which they start: tiles of one rank (0: the longest) of all planes
// (sequence and head) of a section, then the next rank, then the next section. Long tiles first
// keep the last wave short; a section's streamed rows stay in the L2 cache.
struct TileOrder {
  std::int64_t planes, tiles, section;

  TileOrder(std::int64_t planes_of, std::int64_t tiles_of, std::int64_t bytes_per_plane)
      : planes(planes_of), tiles(tiles_of) {
    constexpr std::int64_t kSectionBytes = 16 << 20;  // under half of the smallest L2, 40 MB
    section = std::clamp<std::int64_t>(kSectionBytes / bytes_per_plane, 1, planes);
  }

  struct Place {
    std::int64_t plane;
    int rank;
  };
  __device__ Place locate(std::int64_t block) const {
    const std::int64_t first = block / (section * tiles) * section;
    const std::int64_t rest = block - first * tiles;
    const std::int64_t size = planes - first < section ? planes - first : section;
    return {first + rest % size, static_cast<int>(rest / size)};
  }
};

// Factors of DropoutSpec by element index; one Philox block serves neighbouring indices.
template <class A>
class DropoutFactors {
 public:
  __device__ explicit DropoutFactors(const DropoutSpec& spec)
      : spec_(spec), scale_(A{1} / (A{1} - static_cast<A>(spec.p))) {}

  // index: of the element in the tensor, without spec.base.
  __device__ __forceinline__ A at(std::int64_t index) {
    const std::uint64_t global = spec_.base + static_cast<std::uint64_t>(index);
    if (global / 4 != block_) {
      block_ = global / 4;
      const std::uint64_t high = (std::uint64_t{spec_.key.stream} << 32) | spec_.key.step;
      four_ = philox(spec_.key.seed, block_, high);
    }
    const std::uint32_t low = global % 2 == 0 ? four_.word[0] : four_.word[1];
    const std::uint32_t upper = global % 2 == 0 ? four_.word[2] : four_.word[3];
    const std::uint32_t bits = global % 4 < 2 ? low : upper;
    return static_cast<float>(bits >> 8) * 0x1p-24f >= spec_.p ? scale_ : A{0};
  }

 private:
  const DropoutSpec& spec_;
  A scale_;
  std::uint64_t block_ = ~std::uint64_t{0};  // no index has this block
  Philox4 four_{};
};

// Whether MmaTiles can take it: 16-bit storage, heads that are cut into 16-byte packs.
inline bool in_packs(const ColumnsView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data()) % 16 == 0 && view.stride() % 8 == 0;
}
template <class T, class... Views>
bool fits_mma(const AttentionShape& shape, const Views&... views) {
  return sizeof(T) == 2 && shape.head_size % 8 == 0 && shape.head_size <= 128 &&
         (in_packs(views) && ...);
}

inline void check_attention(const AttentionShape& shape, const QkvViews& qkv, double scale,
                            const char* op) {
  require(shape.head_size <= 256, op, "head_size is at most 256 on CUDA");
  constexpr std::int64_t kMost = 1 << 29;
  require(shape.first_position + shape.sequence < kMost && shape.key_count() < kMost &&
              qkv.q.stride() < kMost && qkv.k.stride() < kMost && qkv.v.stride() < kMost,
          op, "positions and the widths of q, k and v are below 2^29");
  require(scale > 0, op, "scale is positive");
}

}  // namespace zl::cuda
