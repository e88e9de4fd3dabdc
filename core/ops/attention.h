// Rotary positions and attention that never stores the queries x keys matrix.
#pragma once

#include <memory>

#include "core/ops/attention_mask.h"
#include "core/ops/block_table.h"
#include "core/ops/checks.h"
#include "core/ops/columns_view.h"
#include "core/ops/dropout_spec.h"
#include "core/ops/rope_table.h"

namespace zl {

struct AttentionShape {
  std::int64_t batch = 0, sequence = 0, heads = 0, kv_heads = 0, head_size = 0;
  std::int64_t keys = 0;            // of a sequence; 0: as many as queries (`sequence`)
  std::int64_t first_position = 0;  // of the first query among the keys: what a cache holds before
  // Heads cut over ranks: these are heads [first_head, first_head + heads) of so many; 0: all.
  std::int64_t all_heads = 0, first_head = 0;

  std::int64_t rows() const { return batch * sequence; }
  std::int64_t key_count() const { return keys == 0 ? sequence : keys; }
  // Of head `plane` % heads of sequence `plane` / heads: its place among the heads of all ranks.
  std::int64_t global_plane(std::int64_t plane) const {
    if (all_heads == 0) return plane;
    return plane / heads * all_heads + first_head + plane % heads;
  }
  std::int64_t key_rows() const { return batch * key_count(); }
  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_size; }
  std::int64_t out_width() const { return heads * head_size; }
  std::int64_t kv_width() const { return kv_heads * head_size; }
  // Multiply-adds of one product of queries, keys and head_size over the pairs that the mask lets
  // see, x 2.
  double product_flops(const AttentionMask& mask) const {
    if (mask.has_blocks()) {
      return static_cast<double>(batch * head_size) * static_cast<double>(2 * mask.block_pairs);
    }
    return static_cast<double>(batch * heads * head_size) *
           static_cast<double>(2 * mask.pairs(sequence, key_count(), first_position));
  }
};

// Queries, keys and values of attention, or their gradients: rows are positions of the sequences,
// one after the other; columns the heads. They may lie in one matrix, side by side; the matrices of
// k and v have rows of one length.
struct QkvViews {
  ColumnsView q, k, v;

  DType dtype() const { return q.matrix.dtype; }
  std::int64_t bytes() const { return q.bytes() + k.bytes() + v.bytes(); }
  bool fits(const AttentionShape& shape) const {
    return q.is(shape.rows(), shape.out_width()) && k.is(shape.key_rows(), shape.kv_width()) &&
           v.is(shape.key_rows(), shape.kv_width()) && k.stride() == v.stride() &&
           k.matrix.dtype == dtype() && v.matrix.dtype == dtype();
  }
  // Whether they are packed_qkv() of one matrix.
  bool is_packed(const AttentionShape& shape) const {
    return q.matrix.data == k.matrix.data && q.matrix.data == v.matrix.data &&
           q.stride() == shape.qkv_width() && q.first == 0 && k.first == shape.out_width() &&
           v.first == k.first + shape.kv_width();
  }
  template <class F>
  void visit(F&& f, Access access) const {
    f(q.matrix, access), f(k.matrix, access), f(v.matrix, access);
  }
};

// Of qkv[batch*sequence, (heads + 2 kv_heads) * head_size]: rows hold q heads, then k heads, then v
// heads.
inline QkvViews packed_qkv(const TensorView& qkv, const AttentionShape& shape) {
  const std::int64_t queries = shape.out_width(), keys = shape.kv_width();
  return {{qkv, 0, queries}, {qkv, queries, keys}, {qkv, queries + keys, keys}};
}

// Rotates q and k of qkv[n, (H + 2 KV) D] in place by position (Su et al. 2021), in the half-split
// layout of Llama: the pairs of the table, its angles and its multiplier; what lies behind its
// width in a head stays. position: shape.first_position + row mod sequence. inverse: the backward.
struct Rope {
  static constexpr const char* kName = "rope";
  TensorView qkv;
  AttentionShape shape;
  std::shared_ptr<const RopeTable> table;  // outlives the op, wherever it waits
  bool inverse = false;

  void validate() const {
    require(qkv.columns() == shape.qkv_width() && qkv.rows() == shape.rows(), kName,
            "qkv is [batch*sequence, (heads + 2 kv_heads) * head_size]");
    require(table != nullptr && table->width() <= shape.head_size, kName,
            "there is a table, of at most head_size elements");
    require(shape.first_position >= 0, kName, "first_position is at least 0");
  }
  Cost cost() const {
    const std::int64_t elements = qkv.rows() * (shape.heads + shape.kv_heads) * table->width();
    const std::int64_t touched = elements * static_cast<std::int64_t>(size_of(qkv.dtype));
    return {3.0 * static_cast<double>(elements), touched, touched, qkv.rows(), qkv.columns(), 1};
  }
  template <class F>
  void visit(F&& f) const {
    f(qkv, Access::read_write);
  }
};

// What both directions ask of their operands.
inline void require_attention(const AttentionShape& s, const AttentionMask& mask, const char* op) {
  require(s.kv_heads > 0 && s.heads % s.kv_heads == 0, op, "kv_heads divides heads");
  require(s.keys >= 0 && s.first_position >= 0, op, "keys and first_position are at least 0");
  require(!mask.is_causal() || s.first_position + s.sequence <= s.key_count(), op,
          "every query of a causal mask has its own key: first_position + sequence <= keys");
  require((mask.kind == AttentionMaskKind::window) == (mask.window > 0), op,
          "a window mask, and only that, has a window above 0");
  const bool lengths = !mask.lengths.empty();
  require(mask.has_blocks() || lengths == (mask.kind == AttentionMaskKind::lengths), op,
          "a lengths mask has lengths, a mask of blocks may, no other does");
  require(!lengths || (mask.lengths.dtype == DType::i32 && mask.lengths.count() == s.batch), op,
          "lengths is i32[batch]");
  require(mask.has_blocks() != mask.blocks.empty(), op,
          "a mask of blocks, and only that, has them");
  if (!mask.has_blocks()) return;
  require(s.first_position == 0 && s.key_count() == s.sequence &&
              s.sequence % BlockTable::kGranule == 0,
          op, "blocks are of a sequence with itself, whole granules of 16 positions");
  require(mask.layouts == 1 || mask.layouts == s.heads, op, "one layout of blocks, or one a head");
  require(mask.blocks.dtype == DType::i32 &&
              mask.blocks.count() >= BlockTable::header(mask.layouts, s.sequence, mask.parts),
          op, "blocks is i32 and as long as its header says");
}

// out[n, H D] = softmax(scale q k^T, mask) v per head, tiled with the online softmax (Dao et al.
// 2022, FlashAttention, algorithm 1). Query head h reads kv head h / (H / KV); query i of a
// sequence stands at position shape.first_position + i among its keys. lse[batch, H, sequence] f32
// (f64): log-sum-exp of each row. A query that sees no key (length 0): out 0, lse -inf, gradients
// 0. Dropout acts on the probabilities, element index (global_plane(b H + h) sequence + i) keys + j
// from dropout.base.
struct AttentionForward {
  static constexpr const char* kName = "attention_forward";
  QkvViews qkv;
  TensorView out, lse;
  AttentionShape shape;
  double scale = 1.0;
  DropoutSpec dropout;
  AttentionMask mask = {};

  void validate() const {
    require_attention(shape, mask, kName);
    require(qkv.fits(shape), kName,
            "q is [batch*sequence, heads * head_size], k and v [batch*keys, kv_heads * head_size], "
            "of one type and k and v in rows of one length");
    require(out.columns() == shape.out_width() && out.rows() == shape.rows(), kName,
            "out is [batch*sequence, heads * head_size]");
    require(lse.count() == shape.rows() * shape.heads, kName, "lse is [batch, heads, sequence]");
  }
  Cost cost() const {
    return {2.0 * shape.product_flops(mask),
            qkv.bytes() + bytes_of(mask.lengths) + bytes_of(mask.blocks),
            out.bytes() + lse.bytes(),
            shape.batch * shape.heads,
            shape.sequence,
            shape.head_size,
            mask.has_blocks() ? Variant::sparse : Variant::none};
  }
  template <class F>
  void visit(F&& f) const {
    qkv.visit(f, Access::read);
    f(out, Access::write), f(lse, Access::write), f(mask.lengths, Access::read);
    f(mask.blocks, Access::read);
  }
};

// dqkv from dout; recomputes the probabilities from qkv and lse (FlashAttention, algorithm 4).
// delta[batch, H, sequence] f32 (f64): scratch, rowsum(dout * out), of the output as it was before
// or after its rounding. dqkv is overwritten.
struct AttentionBackward {
  static constexpr const char* kName = "attention_backward";
  TensorView dout, out;
  QkvViews qkv;
  TensorView lse;
  QkvViews dqkv;
  TensorView delta;
  AttentionShape shape;
  double scale = 1.0;
  DropoutSpec dropout;
  AttentionMask mask = {};

  void validate() const {
    require_attention(shape, mask, kName);
    require(qkv.fits(shape) && dqkv.fits(shape) && dqkv.dtype() == qkv.dtype(), kName,
            "q and dq are [batch*sequence, heads * head_size], k, v, dk and dv [batch*keys, "
            "kv_heads * head_size], of one type");
    require(out.columns() == shape.out_width() && out.rows() == shape.rows(), kName,
            "out is [batch*sequence, heads * head_size]");
    require(dout.count() == out.count() && lse.count() == delta.count() &&
                lse.count() == shape.rows() * shape.heads,
            kName, "dout like out, delta like lse");
  }
  Cost cost() const {
    return {5.0 * shape.product_flops(mask),
            dout.bytes() + out.bytes() + qkv.bytes() + lse.bytes() + bytes_of(mask.lengths) +
                bytes_of(mask.blocks),
            dqkv.bytes() + delta.bytes(),
            shape.batch * shape.heads,
            shape.sequence,
            shape.head_size,
            mask.has_blocks() ? Variant::sparse : Variant::none};
  }
  template <class F>
  void visit(F&& f) const {
    f(dout, Access::read), f(out, Access::read);
    qkv.visit(f, Access::read);
    f(lse, Access::read);
    dqkv.visit(f, Access::write);
    f(delta, Access::write), f(mask.lengths, Access::read), f(mask.blocks, Access::read);
  }
};

}  // namespace zl
