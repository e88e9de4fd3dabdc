// Attention over a layout of blocks: how its kernels find the columns of the score matrix that
// their rows meet. A block of threads owns up to 64 rows (queries, or keys for the gradients of
// keys) and gathers the granules of columns that one of these rows sees into whole tiles, so that
// work and traffic are those of the blocks that exist. A product leaves out the granules that a row
// does not meet, though another row of its tile does: they may hold what is no number. Ownership:
// nothing. Threads: device code and its launchers.
#pragma once

#include "backends/cuda/ops/attention_tiles.h"
#include "backends/cuda/ops/ops.h"
#include "core/ops/block_table.h"

namespace zl::cuda {

// execute() of the two ops for the block kinds of masks. The second: delta is computed.
void attend_to_blocks(const AttentionForward& op, const ExecContext& context);
void backward_of_blocks(const AttentionBackward& op, const ExecContext& context);

// BlockTable for kernels. kKeys: its tiles are of keys, their columns queries.
template <bool kKeys>
struct BlockWords {
  const std::int32_t* words;
  const std::int32_t* lengths;  // of each sequence's keys; null: all count
  int layouts, starts;          // starts: of a layout
  bool causal;

  BlockWords(const AttentionMask& mask, const AttentionShape& shape)
      : words(mask.blocks.as<const std::int32_t>()),
        lengths(mask.lengths.empty() ? nullptr : mask.lengths.as<const std::int32_t>()),
        layouts(static_cast<int>(mask.layouts)),
        starts(static_cast<int>(BlockTable::tiles(shape.sequence)) + 1),
        causal(mask.is_causal()) {}

  // Where the entries of the tile that row `row` lies in begin; the next word: where they end.
  __device__ __forceinline__ const std::int32_t* tile(int head, int row) const {
    const int layout = (kKeys ? layouts : 0) + (layouts == 1 ? 0 : head);
    return words + std::int64_t{layout} * starts + row / static_cast<int>(BlockTable::kTile);
  }
  __device__ __forceinline__ int limit(const HeadLayout& layout, std::int64_t batch) const {
    return lengths == nullptr ? layout.keys : max(0, min(layout.keys, lengths[batch]));
  }
};

// The columns that rows [row, row + kTileRows) of a head meet, kSlots pieces at a time.
template <class Tiles, bool kKeys>
class GatheredColumns {
  static constexpr int kColumns = Tiles::kTileColumns, kWhole = BlockTable::kGranule;

 public:
  static constexpr int kPiece = kColumns < kWhole ? kColumns : kWhole;
  static constexpr int kSlots = kColumns / kPiece, kPieces = kWhole / kPiece;  // of an entry
  static constexpr std::int64_t kSharedBytes = 2 * kColumns * sizeof(int);

  // shared: kSharedBytes of the block. end: a position past all columns.
  __device__ GatheredColumns(const BlockWords<kKeys>& blocks, int head, int row, int end, int limit,
                             std::byte* shared)
      : entries_(blocks.words + blocks.tile(head, row)[0]),
        pieces_((blocks.tile(head, row)[1] - blocks.tile(head, row)[0]) * kPieces),
        tile_(row / static_cast<int>(BlockTable::kTile) * static_cast<int>(BlockTable::kTile)),
        end_(end),
        limit_(limit),
        causal_(blocks.causal),
        position_(reinterpret_cast<int*>(shared)),
        bits_(position_ + kColumns) {}

  __device__ __forceinline__ int pieces() const { return pieces_; }
  // The position of a piece's first column.
  __device__ __forceinline__ int first(int piece) const {
    if (piece >= pieces_) return end_;
    return BlockTable::granule(entries_[piece / kPieces]) * kWhole + piece % kPieces * kPiece;
  }
  // Writes down the columns of a tile that begins with `piece`, for the calls below.
  __device__ __forceinline__ void fill(int piece) const {
    for (int c = static_cast<int>(threadIdx.x); c < kColumns; c += Tiles::kThreads) {
      const int own = piece + c / kPiece;
      position_[c] = own < pieces_ ? first(own) + c % kPiece : end_;
      bits_[c] = own < pieces_ ? BlockTable::bits(entries_[own / kPieces]) : 0;
    }
  }
  __device__ __forceinline__ int position(int column) const { return position_[column]; }
  // row: its position.
  __device__ __forceinline__ bool sees(int row, int column) const {
    const int other = position_[column];
    const int query = kKeys ? other : row, key = kKeys ? row : other;
    return meets(row, column) && key < limit_ && (!causal_ || key <= query);
  }
  // Whether the granules of a row, by its position, and of a column meet.
  __device__ __forceinline__ bool meets(int row, int column) const {
    return (bits_[column] >> ((row - tile_) / kWhole) & 1) != 0;
  }
  // Rows of a head into a tile of columns.
  template <class Source>
  __device__ __forceinline__ void copy(const Tiles& tiles, typename Tiles::Stored* tile,
                                       const HeadRows<Source>& from, int piece) const {
    constexpr std::int64_t kLine = Tiles::kColumnTile / kColumns;
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      tiles.template copy<kPiece>(tile + slot * kPiece * kLine, from, first(piece + slot));
    }
  }

 private:
  const std::int32_t* entries_;
  int pieces_, tile_, end_, limit_;
  bool causal_;
  int *position_, *bits_;
};

}  // namespace zl::cuda
