// Attention over a layout of blocks: how its kernels find the columns of the score matrix that
// their rows meet. A block of threads owns up to 64 rows (queries, or keys for the gradients of
// keys) and gathers the granules of columns that one of these rows sees into whole tiles, so that
// work and traffic are those of the blocks that exist. The next tile arrives while one is worked
// on; one that all rows see whole needs no mask. A product leaves out the granules that a row does
// not meet, though another row of its tile does: they may hold what is no number. Rows that very
// many granules meet are the work of several blocks of threads, one for each part of BlockTable.
// Ownership: nothing. Threads: device code and its launchers.
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
  int most, parts, first_part;  // TileParts; first_part: a word
  bool causal;

  BlockWords(const AttentionMask& mask, const AttentionShape& shape)
      : words(mask.blocks.as<const std::int32_t>()),
        lengths(mask.lengths.empty() ? nullptr : mask.lengths.as<const std::int32_t>()),
        layouts(static_cast<int>(mask.layouts)),
        starts(static_cast<int>(BlockTable::tiles(shape.sequence)) + 1),
        most(static_cast<int>(mask.parts.most)),
        parts(static_cast<int>(kKeys ? mask.parts.keys : mask.parts.queries)),
        first_part(
            static_cast<int>(kKeys ? BlockTable::key_parts(mask.layouts, shape.sequence, mask.parts)
                                   : BlockTable::query_parts(mask.layouts, shape.sequence))),
        causal(mask.is_causal()) {}

  // Where the entries of the tile that row `row` lies in begin; the next word: where they end.
  __device__ __forceinline__ const std::int32_t* tile(int head, int row) const {
    const int layout = (kKeys ? layouts : 0) + (layouts == 1 ? 0 : head);
    return words + std::int64_t{layout} * starts + row / static_cast<int>(BlockTable::kTile);
  }
  // [tile, begin, end] of the head's parts.
  __device__ __forceinline__ const std::int32_t* part(int head, int i) const {
    const int own = (layouts == 1 ? 0 : head) * parts + i;
    return words + first_part + std::int64_t{own} * BlockTable::kPart;
  }
  __device__ __forceinline__ int limit(const HeadLayout& layout, std::int64_t batch) const {
    return lengths == nullptr ? layout.keys : max(0, min(layout.keys, lengths[batch]));
  }
};

// Which rows of a plane the block at place `rank` owns, and which of their entries: the parts of
// cut tiles come first, then all tiles; those that were cut, and parts that are none, own nothing.
// cuts: whether tiles are cut at all.
template <class Tiles, bool kKeys>
struct BlockShare {
  static constexpr int kOwners = static_cast<int>(BlockTable::kTile) / Tiles::kTileRows;

  int row = 0, part = -1;              // part: -1 for a whole tile
  const std::int32_t* span = nullptr;  // the part's [begin, end); null: the tile's

  __device__ BlockShare(const BlockWords<kKeys>& blocks, int head, int rank, int tiles, bool cuts) {
    const int cut = cuts ? blocks.parts * kOwners : 0;
    if (rank < cut) {
      part = rank / kOwners;
      span = blocks.part(head, part);
      row = (span[0] * kOwners + rank % kOwners) * Tiles::kTileRows;
      ++span;
      return;
    }
    const int tile = kKeys ? rank - cut : tiles - 1 - (rank - cut);
    row = tile * Tiles::kTileRows;
    if (!cuts) return;
    const std::int32_t* start = blocks.tile(head, row);
    if (start[1] - start[0] > blocks.most) row = -1;
  }
  __device__ __forceinline__ bool is_empty() const { return row < 0; }
};

// A tile of columns: kSlots pieces of neighbours, ascending, from anywhere.
template <class Tiles>
struct GatheredTile {
  static constexpr int kColumns = Tiles::kTileColumns, kWhole = BlockTable::kGranule;
  static constexpr int kPiece = kColumns < kWhole ? kColumns : kWhole;
  static constexpr int kSlots = kColumns / kPiece, kPieces = kWhole / kPiece;  // of an entry
  static constexpr int kBits = 1 << BlockTable::kBits;
  static constexpr int kNone = (1 << 29) / kPiece * kBits;  // lies past all columns, met by no row

  const int* words;  // of the slots: what to multiply by kPiece for the first column, and the bits

  __device__ __forceinline__ int first(int slot) const { return words[slot] / kBits * kPiece; }
  __device__ __forceinline__ int bits(int slot) const { return words[slot] % kBits; }
  __device__ __forceinline__ int position(int column) const {
    return first(column / kPiece) + column % kPiece;
  }
  // Of at(., c) of a matrix of tiles: its slot is known to the compiler.
  static constexpr int slot(int c) { return Tiles::column_base(c) / kPiece; }
  __device__ __forceinline__ int position(const Tiles& tiles, int c) const {
    return first(slot(c)) + tiles.column(c) - slot(c) * kPiece;
  }
  // Rows of a head into a tile of shared memory.
  template <class Source>
  __device__ __forceinline__ void copy(const Tiles& tiles, typename Tiles::Stored* tile,
                                       const HeadRows<Source>& from) const {
    constexpr std::int64_t kLine = Tiles::kColumnTile / kColumns;
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      tiles.template copy<kPiece>(tile + s * kPiece * kLine, from, first(s));
    }
  }
};

// What the rows of one warp (MmaTiles) or block (FmaTiles) and a tile of columns have in common.
enum class Meeting { none, some, all };

// Which rows from `row` on, of a tile of the table, meet which columns.
template <class Tiles, bool kKeys>
struct GatheredMask {
  using Tile = GatheredTile<Tiles>;
  int row, limit;  // limit: keys from here on do not count
  bool causal;

  __device__ GatheredMask(const BlockWords<kKeys>& blocks, int row_first, int key_limit)
      : row(row_first), limit(key_limit), causal(blocks.causal) {}

  __device__ __forceinline__ Meeting meeting(const Tiles& tiles, const Tile& tile) const {
    const int top = row + tiles.first_row(), bottom = row + tiles.last_row();
    const int rows = (2 << granule(bottom)) - (1 << granule(top));
    int any = 0, all = rows;
#pragma unroll
    for (int s = 0; s < Tile::kSlots; ++s) any |= tile.bits(s), all &= tile.bits(s);
    if ((any & rows) == 0) return Meeting::none;
    const int left = tile.first(0), right = tile.first(Tile::kSlots - 1) + Tile::kPiece - 1;
    const int last_key = kKeys ? bottom : right, first_query = kKeys ? left : top;
    const bool counts = last_key < limit && (!causal || last_key <= first_query);
    return all == rows && counts ? Meeting::all : Meeting::some;
  }
  // Whether at(r, c) counts.
  __device__ __forceinline__ bool sees(const Tiles& tiles, const Tile& tile, int r, int c) const {
    const int own = row + tiles.row(r), other = tile.position(tiles, c);
    const int query = kKeys ? other : own, key = kKeys ? own : other;
    return (tile.bits(Tile::slot(c)) >> granule(own) & 1) != 0 && key < limit &&
           (!causal || key <= query);
  }
  // Whether the granules of a row and of a column meet, by their places in their tiles.
  __device__ __forceinline__ bool meets(const Tile& tile, int own, int column) const {
    return (tile.bits(column / Tile::kPiece) >> granule(row + own) & 1) != 0;
  }

 private:
  // Of the table's tile.
  static __device__ __forceinline__ int granule(int position) {
    return position % static_cast<int>(BlockTable::kTile) / static_cast<int>(BlockTable::kGranule);
  }
};

// The tiles of columns that rows from `row` on meet, head by head of [head, head_end). The words of
// the tiles to come are brought while one is worked on, so that no copy waits for them.
template <class Tiles, bool kKeys>
class GatheredColumns {
  static constexpr int kTurns = 4;

 public:
  using Tile = GatheredTile<Tiles>;
  static constexpr std::int64_t kSharedBytes = kTurns * Tile::kSlots * sizeof(int);

  // shared: kSharedBytes of the block. The first tiles can be read after a barrier.
  // span: where the entries begin and end if they are a part of the tile's.
  __device__ GatheredColumns(const BlockWords<kKeys>& blocks, int row, int head, int head_end,
                             std::byte* shared, const std::int32_t* span = nullptr)
      : blocks_(blocks),
        span_(span),
        row_(row),
        head_end_(head_end),
        ring_(reinterpret_cast<int*>(shared)) {
    enter(head);
    heads_[0] = head_;
    keep(0, bring());
    heads_[1] = head_;
    keep(1, bring());
  }

  __device__ __forceinline__ bool at_end() const { return heads_[0] >= head_end_; }
  __device__ __forceinline__ bool at_last() const { return heads_[1] >= head_end_; }
  __device__ __forceinline__ int head() const { return heads_[0]; }
  __device__ __forceinline__ int next_head() const { return heads_[1]; }
  __device__ __forceinline__ Tile tile() const { return {turn(0)}; }
  __device__ __forceinline__ Tile next() const { return {turn(1)}; }
  // Which of the shared tiles to use.
  __device__ __forceinline__ int stage() const { return turn_ % Tiles::kStages; }
  __device__ __forceinline__ int next_stage() const { return (turn_ + 1) % Tiles::kStages; }

  // This thread's word of the tile after the next, for step().
  __device__ __forceinline__ int bring() {
    const int piece = piece_ + static_cast<int>(threadIdx.x);
    int word = Tile::kNone;
    if (static_cast<int>(threadIdx.x) < Tile::kSlots && piece < pieces_) {
      const std::int32_t entry = entries_[piece / Tile::kPieces];
      word = (BlockTable::granule(entry) * Tile::kPieces + piece % Tile::kPieces) * Tile::kBits +
             BlockTable::bits(entry);
    }
    return word;
  }
  // To the next tile; a barrier must follow, and one must lie between step() and the work before.
  __device__ __forceinline__ void step(int word) {
    heads_[0] = heads_[1];
    heads_[1] = head_;
    keep(2, word);
    ++turn_;
  }

 private:
  __device__ __forceinline__ int* turn(int ahead) const {
    return ring_ + (turn_ + ahead) % kTurns * Tile::kSlots;
  }
  __device__ __forceinline__ void keep(int ahead, int word) {
    if (static_cast<int>(threadIdx.x) < Tile::kSlots) turn(ahead)[threadIdx.x] = word;
    piece_ += Tile::kSlots;
    if (piece_ >= pieces_) enter(head_ + 1);
  }
  // The first head from `head` on of which there are columns.
  __device__ __forceinline__ void enter(int head) {
    piece_ = pieces_ = 0;
    for (head_ = head; head_ < head_end_; ++head_) {
      const std::int32_t* start = span_ != nullptr ? span_ : blocks_.tile(head_, row_);
      entries_ = blocks_.words + start[0];
      pieces_ = (start[1] - start[0]) * Tile::kPieces;
      if (pieces_ > 0) return;
    }
  }

  const BlockWords<kKeys>& blocks_;
  const std::int32_t *span_, *entries_ = nullptr;
  int row_, head_end_, head_ = 0, piece_ = 0, pieces_ = 0, turn_ = 0;
  int heads_[2] = {};  // of the tile, and of the next
  int* ring_;
};

}  // namespace zl::cuda
