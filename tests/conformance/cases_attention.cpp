// Conformance cases of attention, rotary positions, norms and embeddings.
#include <cmath>

#include "core/ops/op.h"
#include "tests/conformance/cases.h"
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

DropoutSpec dropout_if(Workspace& w, bool wanted) {
  return wanted ? w.dropout(w.uniform(0.05f, 0.6f)) : DropoutSpec{};
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
};

// Keys before the queries, as a cache holds them, and perhaps room behind.
AttentionShape shape_of(Workspace& w, const AttentionForm& form) {
  AttentionShape shape = form.shape(w);
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

AttentionMask mask_of(Workspace& w, const AttentionShape& shape, AttentionMaskKind kind) {
  switch (kind) {
    case AttentionMaskKind::full:
      return AttentionMask::full();
    case AttentionMaskKind::window:
      return AttentionMask::sliding(w.pick({1, 2, 5, 40, 64, 90, 1000}));
    case AttentionMaskKind::lengths:  // 0: a sequence without a key
      return AttentionMask::padded(
          w.integers({shape.batch}, 0, static_cast<std::int32_t>(shape.key_count())));
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
  op.mask = mask_of(w, op.shape, form.mask);
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

struct NormForm {
  NormKind kind = NormKind::layer_norm;
  bool residual = false, dropout = false, alias = false, accumulate = false;
};

Op make_norm(Workspace& w, DType dtype, NormForm form) {
  NormForward op;
  const Shape shape{w.pick({1, 3, 17, 40}), w.pick({1, 3, 17, 63, 65, 768, 1030})};
  op.kind = form.kind;
  op.x = w.normal(dtype, shape, 2.0);
  op.weight = w.normal(dtype, {shape[1]});
  op.out = w.zeros(dtype, shape);
  op.rstd = w.zeros(wide(dtype), {shape[0]});
  if (form.kind == NormKind::layer_norm) {
    op.mean = w.zeros(wide(dtype), {shape[0]});
    op.bias = w.normal(dtype, {shape[1]});
  }
  if (form.residual) {
    op.add = w.normal(dtype, shape, 2.0);
    op.sum = form.alias ? op.x : w.zeros(dtype, shape);
  }
  // Scaling by 2 is exact: with any other p a sum may be stored one unit off the reference's.
  if (form.dropout) op.dropout = w.dropout(0.5f);
  op.epsilon = 1e-3;  // keeps a row of width 1 well conditioned
  return op;
}

Op make_norm_backward(Workspace& w, DType dtype, NormForm form) {
  NormBackward op;
  const Shape shape{w.pick({1, 3, 17, 40, 130}), w.pick({1, 3, 17, 63, 65, 200})};
  op.kind = form.kind;
  op.dout = w.normal(dtype, shape);
  op.x = w.normal(dtype, shape, 2.0);
  op.weight = w.normal(dtype, {shape[1]});
  op.rstd = w.positive(wide(dtype), {shape[0]});
  op.dx = w.zeros(dtype, shape);
  op.dweight = w.normal(wide(dtype), {shape[1]});
  if (form.kind == NormKind::layer_norm) {
    op.mean = w.normal(wide(dtype), {shape[0]}, 0.1);
    op.dbias = w.normal(wide(dtype), {shape[1]});
  }
  if (form.residual) op.dresidual = w.normal(dtype, shape);
  if (form.alias) op.dx = op.dresidual;
  op.accumulate = form.accumulate;
  return op;
}

struct EmbeddingForm {
  bool positions = true, dropout = false, accumulate_wte = false, accumulate_wpe = false;
  std::int64_t first_position = 0;
  bool cut = false;  // other ranks have tokens before and behind
};

// Of a vocabulary of `held` tokens on this rank: ids of all ranks, where the first held one lies.
template <class Op>
void cut_vocabulary(Workspace& w, std::int64_t held, Op& op) {
  op.first_token = w.pick({0, 2, 70});
  op.vocab = op.first_token + held + w.pick({0, 1, 40});
  op.tokens = w.integers({op.tokens.count()}, 0, static_cast<std::int32_t>(op.vocab - 1));
}

Op make_embedding(Workspace& w, DType dtype, EmbeddingForm form) {
  EmbeddingForward op;
  op.sequence = w.pick({1, 3, 17});
  const std::int64_t rows = op.sequence * w.pick({1, 2, 5}), vocab = w.pick({1, 3, 65, 300});
  const std::int64_t width = w.pick({1, 3, 17, 65, 1030});
  op.tokens = w.integers({rows}, 0, static_cast<std::int32_t>(vocab - 1));
  op.wte = w.normal(dtype, {vocab, width});
  op.first_position = form.first_position;
  const std::int64_t positions = op.first_position + op.sequence + w.pick({0, 4});
  if (form.positions) op.wpe = w.normal(dtype, {positions, width});
  op.out = w.zeros(dtype, {rows, width});
  op.dropout = dropout_if(w, form.dropout);
  if (form.cut) cut_vocabulary(w, vocab, op);
  return op;
}

Op make_embedding_backward(Workspace& w, DType dtype, EmbeddingForm form) {
  EmbeddingBackward op;
  op.sequence = w.pick({1, 3, 17});
  const std::int64_t rows = op.sequence * w.pick({1, 2, 5}), vocab = w.pick({1, 3, 65, 300});
  const std::int64_t width = w.pick({1, 3, 17, 65, 200, 1030});
  op.tokens = w.integers({rows}, 0, static_cast<std::int32_t>(vocab - 1));
  op.dout = w.normal(dtype, {rows, width});
  op.dwte = w.normal(wide(dtype), {vocab, width});
  op.first_position = form.first_position;
  const std::int64_t positions = op.first_position + op.sequence + w.pick({0, 4});
  if (form.positions) op.dwpe = w.normal(wide(dtype), {positions, width});
  op.dropout = dropout_if(w, form.dropout);
  op.accumulate_wte = form.accumulate_wte;
  op.accumulate_wpe = form.accumulate_wpe;
  if (form.cut) cut_vocabulary(w, vocab, op);
  return op;
}

// A case maker that passes `form` on.
template <class Form, class Result>
auto with(Result (*make)(Workspace&, DType, Form), Form form) {
  return [=](Workspace& w, DType dtype) -> Op { return make(w, dtype, form); };
}

}  // namespace

std::vector<Case> cases_of(Tag<Rope>) {
  const auto make = [](bool inverse, RopeScaling scaling, std::int64_t first_position = 0) {
    return [=](Workspace& w, DType dtype) -> Op {
      AttentionShape shape = random_shape(w);
      shape.first_position = first_position;
      const double theta = w.coin() ? 10000.0 : 500000.0;
      const TensorView qkv = w.normal(dtype, {shape.rows(), shape.qkv_width()});
      return Rope{qkv, shape, theta, inverse, scaling};
    };
  };
  const RopeScaling llama31{8, 0.5, 2, 16};
  return {{"rope", kFloats, make(false, {}), 4},
          {"rope_inverse", kFloats, make(true, {}), 4},
          {"rope_scaled", kFloats, make(false, llama31), 4},
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

std::vector<Case> cases_of(Tag<NormForward>) {
  using enum NormKind;
  const auto form = [](NormForm f) { return with(make_norm, f); };
  return {{"layer_norm", kFloats, form({.kind = layer_norm}), 2},
          {"rms_norm", kFloats, form({.kind = rms_norm}), 2},
          {"layer_norm_residual", kFloats, form({.kind = layer_norm, .residual = true}), 4},
          {"rms_norm_residual", kFloats, form({.kind = rms_norm, .residual = true}), 4},
          {"layer_norm_dropout_in_x", kFloats,
           form({.kind = layer_norm, .residual = true, .dropout = true, .alias = true}), 4},
          {"rms_norm_dropout", kFloats, form({.kind = rms_norm, .residual = true, .dropout = true}),
           4}};
}

std::vector<Case> cases_of(Tag<NormBackward>) {
  using enum NormKind;
  const auto form = [](NormForm f) { return with(make_norm_backward, f); };
  return {{"layer_norm_backward", kFloats, form({.kind = layer_norm}), 2},
          {"rms_norm_backward", kFloats, form({.kind = rms_norm}), 2},
          {"layer_norm_backward_residual_accumulate", kFloats,
           form({.kind = layer_norm, .residual = true, .accumulate = true}), 2},
          {"rms_norm_backward_in_residual", kFloats,
           form({.kind = rms_norm, .residual = true, .alias = true, .accumulate = true}), 2}};
}

std::vector<Case> cases_of(Tag<EmbeddingForward>) {
  const auto form = [](EmbeddingForm f) { return with(make_embedding, f); };
  return {{"embedding", kFloats, form({})},
          {"embedding_tokens_only", kFloats, form({.positions = false})},
          {"embedding_dropout", kFloats, form({.dropout = true})},
          {"embedding_cached", kFloats, form({.first_position = 5})},
          {"embedding_cut", kFloats, form({.cut = true})}};
}

std::vector<Case> cases_of(Tag<EmbeddingBackward>) {
  const auto form = [](EmbeddingForm f) { return with(make_embedding_backward, f); };
  return {
      {"embedding_backward", kFloats, form({})},
      {"embedding_backward_tokens_only", kFloats, form({.positions = false})},
      {"embedding_backward_dropout", kFloats, form({.dropout = true, .accumulate_wte = true})},
      {"embedding_backward_cached", kFloats, form({.first_position = 5})},
      {"embedding_backward_cut", kFloats, form({.cut = true})},
      {"embedding_backward_cut_accumulate", kFloats, form({.accumulate_wte = true, .cut = true})},
      {"embedding_backward_accumulate", kFloats,
       form({.accumulate_wte = true, .accumulate_wpe = true})}};
}

}  // namespace zl::test
