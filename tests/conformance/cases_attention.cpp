// Conformance cases of attention, and of what comes before it: norms of heads, rotary positions.
#include <cmath>
#include <memory>

#include "core/ops/op.h"
#include "tests/conformance/cases.h"
#include "tests/conformance/random_blocks.h"
#include "tests/conformance/reference.h"

namespace zl::test {
namespace {

AttentionShape random_shape(Workspace& w) {
  AttentionShape shape;
  shape.batch = w.pick({1, 2, 3});
  shape.sequence = w.pick({1, 3, 17, 63, 65, 100});
  shape.kv_heads = w.pick({1, 2});
  shape.heads = shape.kv_heads * w.pick({1, 2, 3});
  shape.head_size = w.pick({2, 8, 16, 64});
  return shape;
}

// Head sizes that GPUs multiply on tensor cores, and sequences around the edges of their tiles.
AttentionShape large_heads(Workspace& w) {
  AttentionShape shape;
  shape.batch = w.pick({1, 2});
  shape.sequence = w.pick({1, 17, 64, 65, 130, 200});
  shape.kv_heads = w.pick({1, 2});
  shape.heads = shape.kv_heads * w.pick({1, 2});
  shape.head_size = w.pick({64, 128});
  return shape;
}

// Sequences of whole tiles, which libraries take too.
AttentionShape whole_tiles(Workspace& w) {
  AttentionShape shape = large_heads(w);
  shape.sequence = w.pick({64, 128, 192});
  return shape;
}

struct AttentionForm {
  AttentionShape (*shape)(Workspace& w) = random_shape;
  bool dropout = false;
  AttentionMaskKind mask = AttentionMaskKind::causal;
  bool cached = false;    // more keys than queries, and queries that do not start at position 0
  bool separate = false;  // keys and values in a matrix of their own
  bool cut = false;       // other ranks have more heads
  bool padded = false;    // lengths beside blocks
};

bool has_blocks(const AttentionForm& form) {
  return form.mask == AttentionMaskKind::blocks || form.mask == AttentionMaskKind::causal_blocks;
}

// Keys before the queries, as a cache holds them, and perhaps room behind.
AttentionShape shape_of(Workspace& w, const AttentionForm& form) {
  AttentionShape shape = form.shape(w);
  if (has_blocks(form)) shape.sequence = w.pick({16, 48, 64, 80, 128, 160, 256});
  if (form.cut) {
    shape.all_heads = 3 * shape.heads;
    shape.first_head = shape.heads * w.pick({0, 1, 2});
  }
  if (!form.cached) return shape;
  shape.first_position = w.pick({1, 5, 63, 64, 70, 150});
  shape.keys = shape.first_position + shape.sequence + w.pick({0, 3, 70});
  if (w.coin()) shape.sequence = 1;
  return shape;
}

AttentionMask mask_of(Workspace& w, const AttentionShape& shape, const AttentionForm& form) {
  const auto lengths = [&] {  // 0: a sequence without a key
    return w.integers({shape.batch}, 0, static_cast<std::int32_t>(shape.key_count()));
  };
  switch (form.mask) {
    case AttentionMaskKind::blocks:
    case AttentionMaskKind::causal_blocks:
      return random_blocks(w, shape, form.mask == AttentionMaskKind::causal_blocks,
                           form.padded ? lengths() : TensorView{});
    case AttentionMaskKind::full:
      return AttentionMask::full();
    case AttentionMaskKind::window:
      return AttentionMask::sliding(w.pick({1, 2, 5, 40, 64, 90, 1000}));
    case AttentionMaskKind::lengths:
      return AttentionMask::padded(lengths());
    default:
      return AttentionMask::causal();
  }
}

// One matrix, or the queries' beside the keys' and values' with columns of no interest before.
template <class Make>
QkvViews make_qkv(const AttentionShape& shape, bool separate, std::int64_t unused, Make&& make) {
  if (!separate) return packed_qkv(make(Shape{shape.rows(), shape.qkv_width()}), shape);
  const std::int64_t width = shape.kv_width();
  const TensorView q = make(Shape{shape.rows(), unused + shape.out_width()});
  const TensorView kv = make(Shape{shape.key_rows(), 2 * width});
  return {{q, unused, shape.out_width()}, {kv, width, width}, {kv, 0, width}};
}

AttentionForward make_attention(Workspace& w, DType dtype, AttentionForm form) {
  AttentionForward op;
  op.shape = shape_of(w, form);
  op.qkv = make_qkv(op.shape, form.separate || form.cached, 8,
                    [&](const Shape& shape) { return w.normal(dtype, shape); });
  op.out = w.zeros(dtype, {op.shape.rows(), op.shape.out_width()});
  op.lse = w.zeros(wide(dtype), {op.shape.batch, op.shape.heads, op.shape.sequence});
  op.scale = 1.0 / std::sqrt(static_cast<double>(op.shape.head_size));
  op.dropout = dropout_if(w, form.dropout);
  op.mask = mask_of(w, op.shape, form);
  return op;
}

// Fills out and lse of a forward from the reference, rounded to their types.
void fill_from_reference(Workspace& w, const AttentionForward& op) {
  AttentionForward wide_op = op;
  for (ColumnsView* view : {&wide_op.qkv.q, &wide_op.qkv.k, &wide_op.qkv.v}) {
    view->matrix = w.widened(view->matrix);
  }
  for (TensorView* view : {&wide_op.out, &wide_op.lse}) *view = w.widened(*view);
  run_reference(wide_op);
  for (std::int64_t i = 0; i < op.out.count(); ++i) set(op.out, i, get(wide_op.out, i));
  for (std::int64_t i = 0; i < op.lse.count(); ++i) set(op.lse, i, get(wide_op.lse, i));
}

Op make_attention_backward(Workspace& w, DType dtype, AttentionForm form) {
  const AttentionForward forward = make_attention(w, dtype, form);
  fill_from_reference(w, forward);
  AttentionBackward op;
  op.dout = w.normal(dtype, forward.out.shape);
  op.out = forward.out;
  op.qkv = forward.qkv;
  op.lse = forward.lse;
  op.dqkv = make_qkv(forward.shape, form.separate || form.cached, 0,
                     [&](const Shape& shape) { return w.zeros(dtype, shape); });
  op.delta = w.zeros(wide(dtype), forward.lse.shape);
  op.shape = forward.shape;
  op.scale = forward.scale;
  op.dropout = forward.dropout;
  op.mask = forward.mask;
  return op;
}

struct HeadNormForm {
  AttentionShape (*shape)(Workspace& w) = random_shape;
  double weight_offset = 0;
  bool accumulate = false;
};

Op make_head_norm(Workspace& w, DType dtype, HeadNormForm form) {
  HeadNormForward op;
  op.shape = form.shape(w);
  op.qkv = w.normal(dtype, {op.shape.rows(), op.shape.qkv_width()}, 2.0);
  op.x = w.zeros(dtype, {op.shape.rows(), normed_width(op.shape)});
  op.q_weight = w.normal(dtype, {op.shape.head_size});
  op.k_weight = w.normal(dtype, {op.shape.head_size});
  op.rstd = w.zeros(wide(dtype), {op.shape.rows(), op.shape.heads + op.shape.kv_heads});
  op.epsilon = 1e-3;
  op.weight_offset = form.weight_offset;
  return op;
}

Op make_head_norm_backward(Workspace& w, DType dtype, HeadNormForm form) {
  HeadNormBackward op;
  op.shape = form.shape(w);
  op.dqkv = w.normal(dtype, {op.shape.rows(), op.shape.qkv_width()});
  op.x = w.normal(dtype, {op.shape.rows(), normed_width(op.shape)}, 2.0);
  op.q_weight = w.normal(dtype, {op.shape.head_size});
  op.k_weight = w.normal(dtype, {op.shape.head_size});
  op.rstd = w.positive(wide(dtype), {op.shape.rows(), op.shape.heads + op.shape.kv_heads});
  op.dq_weight = w.normal(wide(dtype), {op.shape.head_size});
  op.dk_weight = w.normal(wide(dtype), {op.shape.head_size});
  op.weight_offset = form.weight_offset;
  op.accumulate = form.accumulate;
  return op;
}

}  // namespace

std::vector<Case> cases_of(Tag<Rope>) {
  // A part of the head's pairs, for sequences of `length`.
  const auto make = [](bool inverse, const RopeScaling& scaling, std::int64_t first_position = 0,
                       bool partial = false) {
    return [=](Workspace& w, DType dtype) -> Op {
      AttentionShape shape = random_shape(w);
      shape.first_position = first_position;
      const double theta = w.coin() ? 10000.0 : 500000.0;
      const TensorView qkv = w.normal(dtype, {shape.rows(), shape.qkv_width()});
      const std::int64_t width = partial ? shape.head_size / 4 * 2 : shape.head_size;
      return Rope{qkv, shape,
                  std::make_shared<const RopeTable>(
                      rope_table(theta, width, scaling, first_position + shape.sequence)),
                  inverse};
    };
  };
  const RopeScaling llama31{
      .kind = RopeKind::llama3, .factor = 8, .original = 16, .low_freq = 0.5, .high_freq = 2};
  const RopeScaling yarn{.kind = RopeKind::yarn, .factor = 4, .original = 16};
  return {{"rope", kFloats, make(false, {}), 4},
          {"rope_inverse", kFloats, make(true, {}), 4},
          {"rope_scaled", kFloats, make(false, llama31), 4},
          {"rope_multiplied", kFloats, make(false, yarn), 4},
          {"rope_partial_inverse", kFloats, make(true, yarn, 0, true), 4},
          {"rope_cached", kFloats, make(false, {}, 37), 4}};
}

namespace {

// 16-bit kernels may round the probabilities to the storage type before the products.
std::vector<Case> attention_cases(const std::string& name, double tolerance,
                                  const std::function<decltype(Case::make)(AttentionForm)>& form) {
  using enum AttentionMaskKind;
  std::vector<Case> all;
  const auto add = [&](const char* what, const std::vector<DType>& types, AttentionForm with) {
    // A query that sees one key has a gradient of 0: terms of about 1 cancel.
    const bool cancels = with.mask != causal || with.separate || with.cached;
    all.push_back({name + what, types, form(with), tolerance, cancels ? 1.0 : 0.0});
  };
  add("", kFloats, {});
  add("_dropout", kFloats, {.dropout = true});
  add("_large_heads", kHalves, {.shape = large_heads});
  add("_whole_tiles", kHalves, {.shape = whole_tiles});
  add("_separate", kFloats, {.separate = true});
  add("_cached", kFloats, {.cached = true});
  add("_cached_dropout", kFloats, {.dropout = true, .cached = true});
  add("_cached_large_heads", kHalves, {.shape = large_heads, .cached = true});
  add("_cut_dropout", kFloats, {.dropout = true, .cut = true});
  const std::pair<const char*, AttentionMaskKind> kinds[] = {
      {"_full", full}, {"_window", window}, {"_lengths", lengths}};
  for (const auto& [text, kind] : kinds) {
    const std::string what = text;
    add(what.c_str(), kFloats, {.mask = kind});
    add((what + "_large_heads").c_str(), kHalves, {.shape = large_heads, .mask = kind});
    add((what + "_dropout").c_str(), kHalves,
        {.shape = large_heads, .dropout = true, .mask = kind});
    add((what + "_cached").c_str(), kFloats, {.mask = kind, .cached = true});
    add((what + "_cached_large_heads").c_str(), kHalves,
        {.shape = large_heads, .mask = kind, .cached = true});
  }
  for (const auto& [text, kind] :
       {std::pair{"_blocks", blocks}, std::pair{"_causal_blocks", causal_blocks}}) {
    const std::string what = text;
    add(what.c_str(), kFloats, {.mask = kind});
    add((what + "_padded_dropout").c_str(), kFloats,
        {.dropout = true, .mask = kind, .padded = true});
    add((what + "_large_heads").c_str(), kHalves, {.shape = large_heads, .mask = kind});
    add((what + "_large_heads_dropout").c_str(), kHalves,
        {.shape = large_heads, .dropout = true, .mask = kind, .cut = true, .padded = true});
    add((what + "_separate").c_str(), kFloats, {.mask = kind, .separate = true});
  }
  return all;
}

}  // namespace

std::vector<Case> cases_of(Tag<AttentionForward>) {
  return attention_cases("attention", 4, [](AttentionForm f) { return with(make_attention, f); });
}

std::vector<Case> cases_of(Tag<AttentionBackward>) {
  return attention_cases("attention_backward", 8,
                         [](AttentionForm f) { return with(make_attention_backward, f); });
}

std::vector<Case> cases_of(Tag<HeadNormForward>) {
  const auto form = [](HeadNormForm f) { return with(make_head_norm, f); };
  return {{"head_norm", kFloats, form({}), 2},
          {"head_norm_large_heads", kFloats, form({.shape = large_heads}), 2},
          {"head_norm_weight_less_one", kFloats, form({.weight_offset = 1}), 2}};
}

std::vector<Case> cases_of(Tag<HeadNormBackward>) {
  const auto form = [](HeadNormForm f) { return with(make_head_norm_backward, f); };
  return {{"head_norm_backward", kFloats, form({}), 2},
          {"head_norm_backward_large_heads", kFloats, form({.shape = large_heads}), 2},
          {"head_norm_backward_accumulate", kFloats, form({.weight_offset = 1, .accumulate = true}),
           2}};
}

}  // namespace zl::test
