#include "core/model/parameters.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/model/tensor_model.h"

namespace zl {

std::int64_t ParameterSpec::place(std::int64_t i) const {
  const std::int64_t columns = shape.count() / shape[0];
  std::int64_t row = i / columns;
  const std::int64_t width = whole_columns == 0 ? columns : whole_columns;
  const auto in_whole = [&](std::int64_t of_whole) {
    return of_whole * width + column + i % columns;
  };
  if (rows.empty()) return in_whole(row);
  for (const Rows& each : rows) {
    if (row < each.count) return in_whole(each.first + row);
    row -= each.count;
  }
  return -1;
}

std::int64_t ParameterSpec::run(std::int64_t i) const {
  const std::int64_t columns = shape.count() / shape[0];
  if (whole_columns != 0) return columns - i % columns;
  std::int64_t end = 0;
  for (const Rows& each : rows) {
    end += each.count * columns;
    if (i < end) return end - i;
  }
  return count() - i;
}

namespace {

// A norm begins as one that only normalises.
InitKind norm_init(const ModelConfig& config) {
  return config.norm_plus_one ? InitKind::zeros : InitKind::ones;
}

}  // namespace

ParameterTable::ParameterTable(const ModelConfig& whole, const TensorShard& shard) {
  const ModelConfig config = shard_of(whole, shard);
  add_embeddings(config);
  for (int layer = 0; layer < config.layers; ++layer) blocks.push_back(add_block(config, layer));
  config.head == HeadKind::label ? add_label_head(config) : add_head(config);
  if (shard.ranks > 1) cut(whole, config, shard);
}

void ParameterTable::add_embeddings(const ModelConfig& config) {
  const auto table = [&](const char* name, std::int64_t rows) {
    return add(name, {rows, config.hidden}, 0, InitKind::normal, config.init_std);
  };
  token_embedding = table("embedding.token", config.vocab);
  if (config.position == PositionKind::learned) {
    position_embedding = table("embedding.position", config.max_sequence);
  }
  if (config.segments > 0) segment_embedding = table("embedding.segment", config.segments);
  if (!config.encoder) return;
  const Shape width{config.hidden};
  embedding_norm_weight = add("embedding.norm.weight", width, 0, InitKind::ones);
  embedding_norm_bias = add("embedding.norm.bias", width, 0, InitKind::zeros);
}

// Of tokens: those that follow or, behind a dense layer, those that were hidden.
void ParameterTable::add_head(const ModelConfig& config) {
  const Shape width{config.hidden};
  const int last = head_unit();
  const bool masked = config.head == HeadKind::masked_token;
  const std::string norm = masked ? "mlm.norm." : "final_norm.";
  if (masked) {
    dense_weight = add("mlm.dense.weight", {config.hidden, config.hidden}, last, InitKind::normal,
                       config.init_std);
    dense_bias = add("mlm.dense.bias", width, last, InitKind::zeros);
  }
  final_norm_weight = add(norm + "weight", width, last, norm_init(config));
  if (config.norm == NormKind::layer_norm) {
    final_norm_bias = add(norm + "bias", width, last, InitKind::zeros);
  }
  head = config.tied_embeddings
             ? token_embedding
             : add("head", {config.vocab, config.hidden}, last, InitKind::normal, config.init_std);
  if (masked) head_bias = add("mlm.bias", Shape{config.vocab}, last, InitKind::zeros);
}

void ParameterTable::add_label_head(const ModelConfig& config) {
  const int last = head_unit();
  const auto linear = [&](const std::string& name, std::int64_t rows, int& weight, int& bias) {
    weight = add(name + ".weight", {rows, config.hidden}, last, InitKind::normal, config.init_std);
    bias = add(name + ".bias", Shape{rows}, last, InitKind::zeros);
  };
  linear("pooler", config.hidden, dense_weight, dense_bias);
  linear("classifier", config.labels, head, head_bias);
}

// Says of every parameter which part of the whole it is.
void ParameterTable::cut(const ModelConfig& whole, const ModelConfig& part,
                         const TensorShard& shard) {
  kv_copies_ = zl::kv_copies(whole, shard);
  for (ParameterSpec& spec : specs) {  // unless said otherwise below: whole on every rank
    spec.counted = shard.rank == 0 ? -1 : 0;
  }
  const auto norm = [&](int parameter) {
    if (parameter >= 0) specs[parameter].summed = shard.cuts_rows();
  };
  norm(final_norm_weight);
  norm(final_norm_bias);
  const auto rows = [&](int parameter, std::vector<ParameterSpec::Rows> of_whole) {
    if (parameter < 0) return;
    specs[parameter].rows = std::move(of_whole);
    specs[parameter].counted = -1;
  };
  const std::int64_t token = part.vocab * shard.rank;
  const std::int64_t tokens = std::clamp<std::int64_t>(whole.vocab - token, 0, part.vocab);
  rows(token_embedding, {{token, tokens}});
  if (!tied()) rows(head, {{token, tokens}});
  const std::int64_t up = part.ffn * shard.rank;
  std::vector<ParameterSpec::Rows> gate_and_up{{up, part.ffn}};
  if (is_gated(whole.activation)) gate_and_up.push_back({whole.ffn + up, part.ffn});
  for (const BlockParameters& block : blocks) {
    for (const int parameter :
         {block.norm1_weight, block.norm1_bias, block.norm2_weight, block.norm2_bias}) {
      norm(parameter);
    }
    for (const int parameter : {block.q_norm_weight, block.k_norm_weight}) {
      if (parameter >= 0) specs[parameter].summed = true;  // each rank's is of its heads
    }
    cut_attention(block, whole, part, shard);
    rows(block.up_weight, gate_and_up);
    rows(block.up_bias, gate_and_up);
    for (const auto& [parameter, columns] : {std::pair{block.out_weight, whole.attention_width()},
                                             std::pair{block.down_weight, whole.ffn}}) {
      specs[parameter].column = columns / shard.ranks * shard.rank;
      specs[parameter].whole_columns = columns;
      specs[parameter].counted = -1;
    }
  }
}

// Queries, keys and values lie in one matrix. With fewer kv heads than ranks several ranks, one
// after the other, have the same.
void ParameterTable::cut_attention(const BlockParameters& block, const ModelConfig& whole,
                                   const ModelConfig& part, const TensorShard& shard) {
  const int copies = kv_copies_;
  const std::int64_t queries = part.attention_width(), keys = part.kv_heads * part.head_size;
  const std::int64_t first_key = shard.rank / copies * keys;
  const std::int64_t all_queries = whole.attention_width();
  const std::int64_t all_keys = whole.kv_heads * whole.head_size;
  for (const int parameter : {block.qkv_weight, block.qkv_bias}) {
    if (parameter < 0) continue;
    ParameterSpec& spec = specs[parameter];
    spec.rows = {{shard.rank * queries, queries},
                 {all_queries + first_key, keys},
                 {all_queries + all_keys + first_key, keys}};
    const std::int64_t columns = spec.count() / spec.shape[0];
    spec.copied = copies > 1 ? 2 * keys * columns : 0;
    spec.counted = shard.rank % copies == 0 ? -1 : queries * columns;
  }
}

BlockParameters ParameterTable::add_block(const ModelConfig& config, int layer) {
  const std::string prefix = "blocks." + std::to_string(layer) + ".";
  const int unit = layer + 1;
  const double std = config.init_std;
  // GPT-2: projections into the residual stream start smaller by sqrt(2 * layers). BERT's norms
  // follow them.
  const double residual_std =
      config.encoder ? std : std / std::sqrt(2.0 * static_cast<double>(config.layers));
  const auto vector = [&](const char* name, std::int64_t size, InitKind init, bool present) {
    return present ? add(prefix + name, Shape{size}, unit, init) : -1;
  };
  const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns, double scale) {
    return add(prefix + name, {rows, columns}, unit, InitKind::normal, scale);
  };
  const bool norm_bias = config.norm == NormKind::layer_norm;
  const InitKind norm = norm_init(config);
  BlockParameters block{};
  block.norm1_weight = vector("norm1.weight", config.hidden, norm, true);
  block.norm1_bias = vector("norm1.bias", config.hidden, InitKind::zeros, norm_bias);
  block.qkv_weight = matrix("attention.qkv.weight", config.qkv_width(), config.hidden, std);
  block.qkv_bias =
      vector("attention.qkv.bias", config.qkv_width(), InitKind::zeros, config.qkv_bias);
  block.q_norm_weight = vector("attention.q_norm.weight", config.head_size, norm, config.qk_norm);
  block.k_norm_weight = vector("attention.k_norm.weight", config.head_size, norm, config.qk_norm);
  block.out_weight =
      matrix("attention.out.weight", config.hidden, config.attention_width(), residual_std);
  block.out_bias = vector("attention.out.bias", config.hidden, InitKind::zeros, config.out_bias);
  block.norm2_weight = vector("norm2.weight", config.hidden, norm, true);
  block.norm2_bias = vector("norm2.bias", config.hidden, InitKind::zeros, norm_bias);
  block.up_weight = matrix("mlp.up.weight", config.ffn_in_width(), config.hidden, std);
  block.up_bias = vector("mlp.up.bias", config.ffn_in_width(), InitKind::zeros, config.mlp_bias);
  block.down_weight = matrix("mlp.down.weight", config.hidden, config.ffn, residual_std);
  block.down_bias = vector("mlp.down.bias", config.hidden, InitKind::zeros, config.mlp_bias);
  return block;
}

int ParameterTable::add(const std::string& name, const Shape& shape, int unit, InitKind init,
                        double std) {
  const int number = static_cast<int>(specs.size());
  specs.push_back({name, shape, unit, init, std, number});
  return number;
}

ParameterTable ParameterTable::part(const std::vector<bool>& has_unit, bool copies_head) const {
  ParameterTable part = *this;
  part.specs.clear();
  std::vector<int> index(specs.size(), -1);
  for (const ParameterSpec& spec : specs) {
    if (!has_unit[spec.unit]) continue;
    index[spec.number] = static_cast<int>(part.specs.size());
    part.specs.push_back(spec);
  }
  const auto renumber = [&](int& parameter) {
    if (parameter >= 0) parameter = index[parameter];
  };
  for (BlockParameters& block : part.blocks) {
    for (int* parameter :
         {&block.norm1_weight, &block.norm1_bias, &block.qkv_weight, &block.qkv_bias,
          &block.q_norm_weight, &block.k_norm_weight, &block.out_weight, &block.out_bias,
          &block.norm2_weight, &block.norm2_bias, &block.up_weight, &block.up_bias,
          &block.down_weight, &block.down_bias}) {
      renumber(*parameter);
    }
  }
  for (int* parameter : {&part.token_embedding, &part.position_embedding, &part.segment_embedding,
                         &part.embedding_norm_weight, &part.embedding_norm_bias, &part.dense_weight,
                         &part.dense_bias, &part.final_norm_weight, &part.final_norm_bias,
                         &part.head, &part.head_bias}) {
    renumber(*parameter);
  }
  const bool has_head = has_unit[head_unit()], has_embedding = has_unit[0];
  if (tied() && !has_head) part.head = -1;
  if (tied() && has_head && (copies_head || !has_embedding)) {
    part.head = static_cast<int>(part.specs.size());
    part.specs.push_back(specs[token_embedding]);
    part.specs.back().unit = head_unit();
    part.specs.back().name = "head.tied";
  }
  return part;
}

std::vector<std::int64_t> ParameterTable::counts() const {
  std::vector<std::int64_t> counts;
  for (const ParameterSpec& spec : specs) counts.push_back(spec.count());
  return counts;
}

std::int64_t ParameterTable::count() const {
  std::int64_t total = 0;
  for (const ParameterSpec& spec : specs) total += spec.count();
  return total;
}

}  // namespace zl
