#include <string>

#include "core/base/error.h"
#include "scenarios/launch/megatron.h"
#include "simulator/json/reading.h"

#include <nlohmann/json.hpp>

namespace zl {
namespace {

std::string model_argument(const std::string& flag, const Json& value) {
  return flag + " " + to_text(value);
}

void add_shape(const ModelConfig& model, std::vector<std::string>& out) {
  out.push_back(model_argument("--num-layers", model.layers));
  out.push_back(model_argument("--hidden-size", model.hidden));
  out.push_back(model_argument("--ffn-hidden-size", model.ffn));
  out.push_back(model_argument("--num-attention-heads", model.heads));
  if (model.kv_heads != model.heads) {
    out.push_back("--group-query-attention");
    out.push_back(model_argument("--num-query-groups", model.kv_heads));
  }
  if (model.head_size * model.heads != model.hidden) {
    out.push_back(model_argument("--kv-channels", model.head_size));
  }
  out.push_back(model_argument("--vocab-size", model.vocab));
}

void add_kinds(const ModelConfig& model, std::vector<std::string>& out,
               std::vector<std::string>& notes) {
  if (model.norm == NormKind::rms_norm) out.emplace_back("--normalization RMSNorm");
  if (model.norm_plus_one) out.emplace_back("--apply-layernorm-1p");
  out.push_back(model_argument("--norm-epsilon", model.norm_epsilon));
  if (model.activation == ActivationKind::swiglu) {
    out.emplace_back("--swiglu");
  } else if (is_gated(model.activation)) {
    notes.emplace_back("Megatron-LM has no argument for this model's gated activation");
  }
  if (!model.mlp_bias && !model.out_bias) out.emplace_back("--disable-bias-linear");
  if (model.qkv_bias && !model.out_bias) out.emplace_back("--add-qkv-bias");
  if (model.qk_norm) out.emplace_back("--qk-layernorm");
  if (!model.tied_embeddings) out.emplace_back("--untie-embeddings-and-output-weights");
}

void add_positions(const LaunchFacts& facts, std::vector<std::string>& out,
                   std::vector<std::string>& notes) {
  const ModelConfig& model = facts.model;
  out.push_back(model_argument("--seq-length", facts.sequence_length));
  out.push_back(model_argument("--max-position-embeddings",
                               std::max(model.max_sequence, facts.sequence_length)));
  if (model.position == PositionKind::rope) {
    out.emplace_back("--position-embedding-type rope");
    out.push_back(model_argument("--rotary-base", static_cast<std::int64_t>(model.rope_theta)));
    if (model.rotary_fraction != 1)
      out.push_back(model_argument("--rotary-percent", model.rotary_fraction));
  }
  if (model.rope_scaling != RopeScaling{}) {
    notes.emplace_back("the model's rope_scaling is not among the arguments");
  }
  if (model.sliding_window > 0) {
    out.push_back("--window-size " + std::to_string(model.sliding_window - 1) + ",0");
    if (!model.sliding_layers.empty()) {
      notes.emplace_back("--window-size holds in every layer, the model's in some");
    }
  }
  if (model.scaled_embedding) notes.emplace_back("Megatron-LM does not scale the embedding's rows");
}

}  // namespace

std::vector<std::string> megatron_model_arguments(const LaunchFacts& facts,
                                                  std::vector<std::string>& notes) {
  if (facts.model.encoder) {
    throw Error(ErrorCode::invalid, "-o megatron: " + facts.model.name +
                                        " is an encoder; the arguments are those of "
                                        "pretrain_gpt.py, which trains decoders");
  }
  std::vector<std::string> out;
  add_shape(facts.model, out);
  add_kinds(facts.model, out, notes);
  add_positions(facts, out, notes);
  out.push_back(model_argument("--attention-dropout", facts.model.attention_dropout));
  out.push_back(model_argument("--hidden-dropout", facts.model.dropout));
  return out;
}

}  // namespace zl
