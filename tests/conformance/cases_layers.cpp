// Conformance cases of norms and embeddings.
#include "core/ops/op.h"
#include "tests/conformance/cases.h"

namespace zl::test {
namespace {

struct NormForm {
  NormKind kind = NormKind::layer_norm;
  bool residual = false, dropout = false, alias = false, accumulate = false;
  double weight_offset = 0;
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
  op.weight_offset = form.weight_offset;
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
  op.weight_offset = form.weight_offset;
  return op;
}

struct EmbeddingForm {
  bool positions = true, dropout = false, accumulate_wte = false, accumulate_wpe = false;
  std::int64_t first_position = 0;
  bool cut = false;  // other ranks have tokens before and behind
  double scale = 1;
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
  op.scale = form.scale;
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
  op.scale = form.scale;
  if (form.cut) cut_vocabulary(w, vocab, op);
  return op;
}

}  // namespace

std::vector<Case> cases_of(Tag<NormForward>) {
  using enum NormKind;
  const auto form = [](NormForm f) { return with(make_norm, f); };
  return {
      {"layer_norm", kFloats, form({.kind = layer_norm}), 2},
      {"rms_norm", kFloats, form({.kind = rms_norm}), 2},
      {"layer_norm_residual", kFloats, form({.kind = layer_norm, .residual = true}), 4},
      {"rms_norm_residual", kFloats, form({.kind = rms_norm, .residual = true}), 4},
      {"layer_norm_dropout_in_x", kFloats,
       form({.kind = layer_norm, .residual = true, .dropout = true, .alias = true}), 4},
      {"rms_norm_dropout", kFloats, form({.kind = rms_norm, .residual = true, .dropout = true}), 4},
      {"rms_norm_weight_less_one", kFloats,
       form({.kind = rms_norm, .residual = true, .weight_offset = 1}), 4},
      {"layer_norm_weight_less_one", kFloats, form({.kind = layer_norm, .weight_offset = 1}), 4}};
}

std::vector<Case> cases_of(Tag<NormBackward>) {
  using enum NormKind;
  const auto form = [](NormForm f) { return with(make_norm_backward, f); };
  return {{"layer_norm_backward", kFloats, form({.kind = layer_norm}), 2},
          {"rms_norm_backward", kFloats, form({.kind = rms_norm}), 2},
          {"layer_norm_backward_residual_accumulate", kFloats,
           form({.kind = layer_norm, .residual = true, .accumulate = true}), 2},
          {"rms_norm_backward_in_residual", kFloats,
           form({.kind = rms_norm, .residual = true, .alias = true, .accumulate = true}), 2},
          {"rms_norm_backward_weight_less_one", kFloats,
           form({.kind = rms_norm, .residual = true, .weight_offset = 1}), 2}};
}

std::vector<Case> cases_of(Tag<EmbeddingForward>) {
  const auto form = [](EmbeddingForm f) { return with(make_embedding, f); };
  return {{"embedding", kFloats, form({})},
          {"embedding_tokens_only", kFloats, form({.positions = false})},
          {"embedding_dropout", kFloats, form({.dropout = true})},
          {"embedding_cached", kFloats, form({.first_position = 5})},
          {"embedding_scaled", kFloats, form({.scale = 6.75})},
          {"embedding_cut", kFloats, form({.cut = true})}};
}

std::vector<Case> cases_of(Tag<EmbeddingBackward>) {
  const auto form = [](EmbeddingForm f) { return with(make_embedding_backward, f); };
  return {
      {"embedding_backward", kFloats, form({})},
      {"embedding_backward_tokens_only", kFloats, form({.positions = false})},
      {"embedding_backward_dropout", kFloats, form({.dropout = true, .accumulate_wte = true})},
      {"embedding_backward_cached", kFloats, form({.first_position = 5})},
      {"embedding_backward_scaled", kFloats, form({.accumulate_wte = true, .scale = 6.75})},
      {"embedding_backward_cut", kFloats, form({.cut = true})},
      {"embedding_backward_cut_accumulate", kFloats, form({.accumulate_wte = true, .cut = true})},
      {"embedding_backward_accumulate", kFloats,
       form({.accumulate_wte = true, .accumulate_wpe = true})}};
}

}  // namespace zl::test
