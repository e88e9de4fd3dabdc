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
};

AttentionForward make_attention(Workspace& w, DType dtype, AttentionForm form) {
  AttentionForward op;
  op.shape = form.shape(w);
  op.qkv = w.normal(dtype, {op.shape.rows(), op.shape.qkv_width()});
  op.out = w.zeros(dtype, {op.shape.rows(), op.shape.out_width()});
  op.lse = w.zeros(wide(dtype), {op.shape.batch, op.shape.heads, op.shape.sequence});
  op.scale = 1.0 / std::sqrt(static_cast<double>(op.shape.head_size));
  op.dropout = dropout_if(w, form.dropout);
  return op;
}

// Fills out and lse of a forward from the reference, rounded to their types.
void fill_from_reference(Workspace& w, const AttentionForward& op) {
  AttentionForward wide_op = op;
  for (TensorView* view : {&wide_op.qkv, &wide_op.out, &wide_op.lse}) *view = w.widened(*view);
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
  op.dqkv = w.zeros(dtype, forward.qkv.shape);
  op.delta = w.zeros(wide(dtype), forward.lse.shape);
  op.shape = forward.shape;
  op.scale = forward.scale;
  op.dropout = forward.dropout;
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
};

Op make_embedding(Workspace& w, DType dtype, EmbeddingForm form) {
  EmbeddingForward op;
  op.sequence = w.pick({1, 3, 17});
  const std::int64_t rows = op.sequence * w.pick({1, 2, 5}), vocab = w.pick({1, 3, 65, 300});
  const std::int64_t width = w.pick({1, 3, 17, 65, 1030});
  op.tokens = w.integers({rows}, 0, static_cast<std::int32_t>(vocab - 1));
  op.wte = w.normal(dtype, {vocab, width});
  if (form.positions) op.wpe = w.normal(dtype, {op.sequence + w.pick({0, 4}), width});
  op.out = w.zeros(dtype, {rows, width});
  op.dropout = dropout_if(w, form.dropout);
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
  if (form.positions) op.dwpe = w.normal(wide(dtype), {op.sequence + w.pick({0, 4}), width});
  op.dropout = dropout_if(w, form.dropout);
  op.accumulate_wte = form.accumulate_wte;
  op.accumulate_wpe = form.accumulate_wpe;
  return op;
}

// A case maker that passes `form` on.
template <class Form, class Result>
auto with(Result (*make)(Workspace&, DType, Form), Form form) {
  return [=](Workspace& w, DType dtype) -> Op { return make(w, dtype, form); };
}

}  // namespace

std::vector<Case> cases_of(Tag<Rope>) {
  const auto make = [](bool inverse, RopeScaling scaling) {
    return [=](Workspace& w, DType dtype) -> Op {
      const AttentionShape shape = random_shape(w);
      const double theta = w.coin() ? 10000.0 : 500000.0;
      const TensorView qkv = w.normal(dtype, {shape.rows(), shape.qkv_width()});
      return Rope{qkv, shape, theta, inverse, scaling};
    };
  };
  const RopeScaling llama31{8, 0.5, 2, 16};
  return {{"rope", kFloats, make(false, {}), 4},
          {"rope_inverse", kFloats, make(true, {}), 4},
          {"rope_scaled", kFloats, make(false, llama31), 4}};
}

// 16-bit kernels may round the probabilities to the storage type before the products.
std::vector<Case> cases_of(Tag<AttentionForward>) {
  const auto form = [](AttentionForm f) { return with(make_attention, f); };
  return {{"attention", kFloats, form({}), 4},
          {"attention_dropout", kFloats, form({.dropout = true}), 4},
          {"attention_large_heads", kHalves, form({.shape = large_heads}), 4},
          {"attention_whole_tiles", kHalves, form({.shape = whole_tiles}), 4}};
}

std::vector<Case> cases_of(Tag<AttentionBackward>) {
  const auto form = [](AttentionForm f) { return with(make_attention_backward, f); };
  return {{"attention_backward", kFloats, form({}), 8},
          {"attention_backward_dropout", kFloats, form({.dropout = true}), 8},
          {"attention_backward_large_heads", kHalves, form({.shape = large_heads}), 8},
          {"attention_backward_whole_tiles", kHalves, form({.shape = whole_tiles}), 8}};
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
          {"embedding_dropout", kFloats, form({.dropout = true})}};
}

std::vector<Case> cases_of(Tag<EmbeddingBackward>) {
  const auto form = [](EmbeddingForm f) { return with(make_embedding_backward, f); };
  return {{"embedding_backward", kFloats, form({})},
          {"embedding_backward_tokens_only", kFloats, form({.positions = false})},
          {"embedding_backward_dropout", kFloats, form({.dropout = true, .accumulate_wte = true})},
          {"embedding_backward_accumulate", kFloats,
           form({.accumulate_wte = true, .accumulate_wpe = true})}};
}

}  // namespace zl::test
