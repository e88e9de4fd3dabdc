#include "core/model/transformer.h"
#include "core/ops/embedding.h"
#include "core/ops/loss.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"

#include <algorithm>
#include <utility>

namespace zl {

Transformer::Transformer(RankContext& context, ParameterAccess& access, const ModelConfig& config,
                         const ParameterTable& table, const RecomputePlan& recompute,
                         std::unique_ptr<KeptInputs> kept_inputs)
    : context_(context),
      access_(access),
      config_(config),
      table_(table),
      recompute_(recompute),
      away_(std::move(kept_inputs)) {
  int unit = 1;
  for (const BlockParameters& block : table.blocks) {
    blocks_.emplace_back(context, access, config, block, unit++);
  }
  saved_.resize(blocks_.size());
}

void Transformer::forward(const TensorView& tokens, const TensorView& targets,
                          const BatchGeometry& batch, const TensorView& loss, double loss_weight,
                          double gradient_scale) {
  batch_ = batch;
  batch_.drop_attention = recompute_.drop_attention();
  batch_.drop_activation = recompute_.drop_activation();
  tokens_ = tokens;
  ResidualPair stream = embed(tokens);
  for (const RecomputePlan::Group& group : recompute_.groups()) {
    ResidualPair out;
    blocks_forward(std::move(stream), group, out);
    stream = std::move(out);
  }
  if (away_) away_->finish();
  const int unit = table_.head_unit();
  ScopeGuard scope(context_, Phase::forward, unit);
  access_.enter(unit, Pass::forward);
  final_norm(std::move(stream));
  head(targets, loss, loss_weight, gradient_scale, true);
  access_.leave(unit, Pass::forward);
}

void Transformer::evaluate(const TensorView& tokens, const TensorView& targets,
                           const BatchGeometry& batch, const TensorView& loss, double loss_weight) {
  batch_ = batch;
  ResidualPair stream = embed(tokens);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const int unit = static_cast<int>(i) + 1;
    ScopeGuard scope(context_, Phase::forward, unit);
    access_.enter(unit, Pass::forward);
    BlockActivations dropped;
    stream = blocks_[i].forward(std::move(stream), batch_, dropped);
    stream.owned = std::move(dropped.x2);
    access_.leave(unit, Pass::forward);
  }
  const int unit = table_.head_unit();
  ScopeGuard scope(context_, Phase::forward, unit);
  access_.enter(unit, Pass::forward);
  final_norm(std::move(stream));
  head(targets, loss, loss_weight, 0, false);
  access_.leave(unit, Pass::forward);
  final_input_.reset(), final_mean_.reset(), final_rstd_.reset();
}

ResidualPair Transformer::embed(const TensorView& tokens) {
  ScopeGuard scope(context_, Phase::forward, 0);
  access_.enter(0, Pass::forward);
  ResidualPair stream;
  stream.owned = context_.allocate(batch_.dtype, {batch_.rows(), config_.hidden},
                                   MemoryTag::activation, {"embedding", 0});
  stream.x = stream.owned;
  const int position = table_.position_embedding;
  context_.run(EmbeddingForward{tokens, access_.weight(table_.token_embedding),
                                position < 0 ? TensorView{} : access_.weight(position), stream.x,
                                batch_.sequence,
                                dropout_spec(config_.dropout, batch_, 0, DropoutSite::embedding,
                                             batch_.sequence * config_.hidden)});
  access_.leave(0, Pass::forward);
  return stream;
}

void Transformer::blocks_forward(ResidualPair stream, const RecomputePlan::Group& group,
                                 ResidualPair& out) {
  for (int layer = group.begin; layer < group.end; ++layer) {
    const int unit = layer + 1;
    ScopeGuard scope(context_, Phase::forward, unit);
    access_.enter(unit, Pass::forward);
    BlockActivations& saved = saved_[static_cast<std::size_t>(layer)];
    stream = blocks_[static_cast<std::size_t>(layer)].forward(std::move(stream), batch_, saved);
    if (group.recomputed) {
      Tensor input = std::move(saved.input);
      stream.owned = std::move(saved.x2);
      saved = {};
      if (layer == group.begin && away_) {
        away_->put(layer, std::move(input));
      } else if (layer == group.begin) {
        saved.input = std::move(input);
      }
    }
    access_.leave(unit, Pass::forward);
  }
  out = std::move(stream);
}

void Transformer::final_norm(ResidualPair stream) {
  const Shape rows_by_hidden{batch_.rows(), config_.hidden};
  const Label label{"final norm", table_.head_unit()};
  const auto activation = [&](const Shape& shape, DType dtype) {
    return context_.allocate(dtype, shape, MemoryTag::activation, label);
  };
  const bool fused = !stream.add.view.empty();
  final_input_ = fused ? activation(rows_by_hidden, batch_.dtype) : std::move(stream.owned);
  final_out_ = activation(rows_by_hidden, batch_.dtype);
  if (config_.norm == NormKind::layer_norm) {
    final_mean_ = activation(Shape{batch_.rows()}, DType::f32);
  }
  final_rstd_ = activation(Shape{batch_.rows()}, DType::f32);
  const int bias = table_.final_norm_bias;
  NormForward norm{config_.norm,
                   fused ? stream.x : final_input_.view,
                   {},
                   {},
                   access_.weight(table_.final_norm_weight),
                   bias < 0 ? TensorView{} : access_.weight(bias),
                   final_out_,
                   final_mean_,
                   final_rstd_,
                   config_.norm_epsilon,
                   {}};
  if (fused) {
    norm.add = stream.add;
    norm.sum = final_input_;
    norm.dropout = dropout_spec(config_.dropout, batch_, table_.head_unit() - 1,
                                DropoutSite::mlp_out, batch_.sequence * config_.hidden);
  }
  context_.run(norm);
}

// Rows of logits begin at multiples of 128 bytes in 16-bit types: GPT-2's 50257 columns would leave
// most of them at an odd multiple of two, where no GPU copies more than an element at a time.
std::int64_t Transformer::logits_width() const {
  constexpr std::int64_t kElements = 64;
  return (config_.vocab + kElements - 1) / kElements * kElements;
}

// About 256 MiB of logits, in whole tiles of 64 rows; the last chunk may be shorter. Each chunk
// reads and writes the whole fp32 gradient of the head, which GPUs hide only behind a thousand rows
// or more.
std::int64_t Transformer::chunk_rows() const {
  constexpr std::int64_t kBytes = std::int64_t{256} << 20, kTile = 64;
  const std::int64_t row = logits_width() * static_cast<std::int64_t>(size_of(batch_.dtype));
  return std::min(batch_.rows(), std::max<std::int64_t>(1, kBytes / row / kTile) * kTile);
}

void Transformer::head(const TensorView& targets, const TensorView& loss, double loss_weight,
                       double gradient_scale, bool train) {
  const std::int64_t rows = batch_.rows();
  const int unit = table_.head_unit();
  const TensorView weight = access_.weight(table_.head);
  Tensor losses =
      context_.allocate(DType::f32, Shape{rows}, MemoryTag::workspace, {"losses", unit});
  if (train) {
    gradient_ = context_.allocate(batch_.dtype, {rows, config_.hidden}, MemoryTag::activation,
                                  {"residual gradient", unit});
  }
  const bool padded = logits_width() != config_.vocab;
  Tensor storage = context_.allocate(batch_.dtype, {chunk_rows(), logits_width()},
                                     MemoryTag::workspace, {"logits chunk", unit});
  const auto scale = static_cast<float>(gradient_scale / static_cast<double>(rows));
  GradientTarget dweight;
  if (train) dweight = access_.gradient(table_.head);
  for (std::int64_t first = 0; first < rows; first += chunk_rows()) {
    const std::int64_t count = std::min(chunk_rows(), rows - first);
    const TensorView logits = storage.view.row_range(0, count);
    const TensorView input = final_out_.view.row_range(first, count);
    context_.run(Gemm{input, weight, logits, {}, false, true, false, padded});
    context_.run(CrossEntropy{logits, targets.flat(first, count), losses.view.flat(first, count),
                              config_.vocab, scale, train});
    if (!train) continue;
    context_.run(Gemm{
        logits, input, dweight.view, {}, true, false, dweight.accumulate || first > 0, padded});
    context_.run(Gemm{
        logits, weight, gradient_.view.row_range(first, count), {}, false, false, false, padded});
  }
  context_.run(Sum{losses, loss, loss_weight / static_cast<double>(rows), true});
  final_out_.reset();
}

void Transformer::backward() {
  const int head_unit = table_.head_unit();
  {
    ScopeGuard scope(context_, Phase::backward, head_unit);
    access_.enter(head_unit, Pass::backward);
    if (!table_.tied()) access_.gradient_ready(table_.head);
    const GradientTarget dweight = access_.gradient(table_.final_norm_weight);
    const int bias = table_.final_norm_bias;
    const TensorView dbias = bias < 0 ? TensorView{} : access_.gradient(bias).view;
    context_.run(NormBackward{config_.norm,
                              gradient_,
                              final_input_,
                              access_.weight(table_.final_norm_weight),
                              final_mean_,
                              final_rstd_,
                              {},
                              gradient_,
                              dweight.view,
                              dbias,
                              dweight.accumulate});
    access_.gradient_ready(table_.final_norm_weight);
    if (bias >= 0) access_.gradient_ready(bias);
    final_input_.reset(), final_mean_.reset(), final_rstd_.reset();
    access_.leave(head_unit, Pass::backward);
  }
  const auto& groups = recompute_.groups();
  for (std::size_t left = groups.size(); left-- > 0;) {
    const RecomputePlan::Group& group = groups[left];
    if (away_) bring_back(left);
    if (group.recomputed) recompute_group(group);
    for (int layer = group.end - 1; layer >= group.begin; --layer) block_backward(layer);
  }
  embedding_backward();
  gradient_.reset();
}

// The kept input of a group from the host, and the one before it on its way.
void Transformer::bring_back(std::size_t index) {
  const auto& groups = recompute_.groups();
  const RecomputePlan::Group& group = groups[index];
  if (group.recomputed) {
    saved_[static_cast<std::size_t>(group.begin)].input = away_->take(group.begin);
  }
  if (index > 0 && groups[index - 1].recomputed) away_->fetch(groups[index - 1].begin);
}

// A group of one is recomputed inside its backward visit (block_backward); a longer one makes a
// forward visit of all but its last block first.
void Transformer::recompute_group(const RecomputePlan::Group& group) {
  ResidualPair stream;
  for (int layer = group.begin; layer + 1 < group.end; ++layer) {
    const int unit = layer + 1;
    ScopeGuard scope(context_, Phase::recompute, unit);
    access_.enter(unit, Pass::forward);
    Block& block = blocks_[static_cast<std::size_t>(layer)];
    BlockActivations& saved = saved_[static_cast<std::size_t>(layer)];
    stream = layer == group.begin ? block.forward_from_input(batch_, saved, false)
                                  : block.forward(std::move(stream), batch_, saved, false);
    access_.leave(unit, Pass::forward);
  }
  if (group.end - group.begin > 1) pending_ = std::move(stream);
}

void Transformer::block_backward(int layer) {
  const int unit = layer + 1;
  BlockActivations& saved = saved_[static_cast<std::size_t>(layer)];
  access_.enter(unit, Pass::backward);
  if (saved.norm1.view.empty()) {
    ScopeGuard scope(context_, Phase::recompute, unit);
    Block& block = blocks_[static_cast<std::size_t>(layer)];
    if (saved.input.view.empty()) {
      block.forward(std::move(pending_), batch_, saved, true);
    } else {
      block.forward_from_input(batch_, saved, true);
    }
  }
  ScopeGuard scope(context_, Phase::backward, unit);
  blocks_[static_cast<std::size_t>(layer)].backward(gradient_, batch_, saved);
  access_.leave(unit, Pass::backward);
}

void Transformer::embedding_backward() {
  ScopeGuard scope(context_, Phase::backward, 0);
  access_.enter(0, Pass::backward);
  const GradientTarget dtoken = access_.gradient(table_.token_embedding);
  GradientTarget dposition;
  const int position = table_.position_embedding;
  if (position >= 0) dposition = access_.gradient(position);
  context_.run(EmbeddingBackward{tokens_, gradient_, dtoken.view, dposition.view, batch_.sequence,
                                 dropout_spec(config_.dropout, batch_, 0, DropoutSite::embedding,
                                              batch_.sequence * config_.hidden),
                                 dtoken.accumulate, dposition.accumulate});
  access_.gradient_ready(table_.token_embedding);
  if (position >= 0) access_.gradient_ready(position);
  access_.leave(0, Pass::backward);
}

std::vector<Visit> Transformer::visits() const {
  std::vector<Visit> order{{0, Pass::forward}};
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    order.push_back({static_cast<int>(i) + 1, Pass::forward});
  }
  order.push_back({table_.head_unit(), Pass::forward});
  order.push_back({table_.head_unit(), Pass::backward});
  const auto& groups = recompute_.groups();
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    for (int layer = group->begin; group->recomputed && layer + 1 < group->end; ++layer) {
      order.push_back({layer + 1, Pass::forward});
    }
    for (int layer = group->end - 1; layer >= group->begin; --layer) {
      order.push_back({layer + 1, Pass::backward});
    }
  }
  order.push_back({0, Pass::backward});
  return order;
}

}  // namespace zl
