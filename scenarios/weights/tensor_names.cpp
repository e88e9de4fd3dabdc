#include "scenarios/weights/tensor_names.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/base/error.h"

namespace zl {
namespace {

// `ours` without layer and ".weight" or ".bias"; `theirs` likewise: several where the rows of ours
// are tensors apart.
struct Name {
  std::string_view ours;
  std::array<std::string_view, 3> theirs;
  bool of_head = false;  // stands outside of the base model
};

struct Family {
  std::string_view base;                  // what all but the head begins with
  std::string_view layers;                // what comes before a layer's number
  bool transposed = false;                // matrices of layers
  std::span<const Name> outside, inside;  // of layers
  std::string_view head = "lm_head.weight";
};

constexpr std::array kGpt2Outside{Name{"embedding.token", {"wte"}},
                                  Name{"embedding.position", {"wpe"}},
                                  Name{"final_norm", {"ln_f"}}};
constexpr std::array kGpt2Inside{Name{"norm1", {"ln_1"}},
                                 Name{"norm2", {"ln_2"}},
                                 Name{"mlp.up", {"mlp.c_fc"}},
                                 Name{"mlp.down", {"mlp.c_proj"}},
                                 Name{"attention.qkv", {"attn.c_attn"}},
                                 Name{"attention.out", {"attn.c_proj"}}};
constexpr std::array kLlamaOutside{Name{"embedding.token", {"embed_tokens"}},
                                   Name{"final_norm", {"norm"}}};
constexpr std::array kLlamaInside{
    Name{"norm1", {"input_layernorm"}},
    Name{"norm2", {"post_attention_layernorm"}},  // the norm before the MLP, whatever its name
    Name{"mlp.up", {"mlp.gate_proj", "mlp.up_proj"}},
    Name{"mlp.down", {"mlp.down_proj"}},
    Name{"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
    Name{"attention.q_norm", {"self_attn.q_norm"}},
    Name{"attention.k_norm", {"self_attn.k_norm"}},
    Name{"attention.out", {"self_attn.o_proj"}}};
constexpr std::array kPhi3Inside{Name{"norm1", {"input_layernorm"}},
                                 Name{"norm2", {"post_attention_layernorm"}},
                                 Name{"mlp.up", {"mlp.gate_up_proj"}},
                                 Name{"mlp.down", {"mlp.down_proj"}},
                                 Name{"attention.qkv", {"self_attn.qkv_proj"}},
                                 Name{"attention.out", {"self_attn.o_proj"}}};

constexpr std::array kBertOutside{Name{"embedding.token", {"embeddings.word_embeddings"}},
                                  Name{"embedding.position", {"embeddings.position_embeddings"}},
                                  Name{"embedding.segment", {"embeddings.token_type_embeddings"}},
                                  Name{"embedding.norm", {"embeddings.LayerNorm"}},
                                  Name{"pooler", {"pooler.dense"}},
                                  Name{"classifier", {"classifier"}, true},
                                  Name{"mlm.dense", {"cls.predictions.transform.dense"}, true},
                                  Name{"mlm.norm", {"cls.predictions.transform.LayerNorm"}, true},
                                  Name{"mlm", {"cls.predictions"}, true}};
constexpr std::array kRobertaOutside{
    Name{"embedding.token", {"embeddings.word_embeddings"}},
    Name{"embedding.position", {"embeddings.position_embeddings"}},
    Name{"embedding.segment", {"embeddings.token_type_embeddings"}},
    Name{"embedding.norm", {"embeddings.LayerNorm"}},
    Name{"pooler", {"classifier.dense"}, true},
    Name{"classifier", {"classifier.out_proj"}, true},
    Name{"mlm.dense", {"lm_head.dense"}, true},
    Name{"mlm.norm", {"lm_head.layer_norm"}, true},
    Name{"mlm", {"lm_head"}, true}};
constexpr std::array kBertInside{
    Name{"norm1", {"attention.output.LayerNorm"}},
    Name{"norm2", {"output.LayerNorm"}},
    Name{"mlp.up", {"intermediate.dense"}},
    Name{"mlp.down", {"output.dense"}},
    Name{"attention.qkv", {"attention.self.query", "attention.self.key", "attention.self.value"}},
    Name{"attention.out", {"attention.output.dense"}}};

constexpr Family kGpt2{"transformer.", "h.", true, kGpt2Outside, kGpt2Inside};
constexpr Family kLlama{"model.", "layers.", false, kLlamaOutside, kLlamaInside};
constexpr Family kPhi3{"model.", "layers.", false, kLlamaOutside, kPhi3Inside};
constexpr Family kBert{"bert.",      "encoder.layer.", false,
                       kBertOutside, kBertInside,      "cls.predictions.decoder.weight"};
constexpr Family kRoberta{"roberta.",      "encoder.layer.", false,
                          kRobertaOutside, kBertInside,      "lm_head.decoder.weight"};

const Family& family_of(std::string_view model_type) {
  if (model_type == "bert") return kBert;
  if (model_type == "roberta") return kRoberta;
  if (model_type == "gpt2") return kGpt2;
  if (model_type == "phi3") return kPhi3;
  return kLlama;
}

constexpr std::string_view kLayers = "blocks.";

// "blocks.3.attention.qkv.bias" in its parts; outside of layers `layer` is empty.
struct Parts {
  std::string_view layer, stem, kind = "weight";
};

Parts parts_of(std::string_view name) {
  Parts parts;
  if (name.starts_with(kLayers)) {
    name.remove_prefix(kLayers.size());
    parts.layer = name.substr(0, name.find('.'));
    name.remove_prefix(parts.layer.size() + 1);
  }
  for (const std::string_view kind : {"weight", "bias"}) {
    if (!name.ends_with(kind) || name.size() <= kind.size()) continue;
    if (name[name.size() - kind.size() - 1] != '.') continue;
    parts.kind = kind;
    name.remove_suffix(kind.size() + 1);
    break;
  }
  parts.stem = name;
  return parts;
}

// How many rows each of the `count` tensors of a parameter has.
std::vector<std::int64_t> rows_of(const ParameterSpec& spec, const ModelConfig& model,
                                  std::size_t count) {
  if (count == 1) return {spec.shape[0]};
  if (count == 2) return {model.ffn, model.ffn};
  const std::int64_t keys = model.kv_heads * model.head_size;
  return {model.attention_width(), keys, keys};
}

}  // namespace

std::vector<TensorPiece> tensors_of(const ParameterSpec& spec, const ModelConfig& model,
                                    std::string_view model_type) {
  const Family& family = family_of(model_type);
  const Parts parts = parts_of(spec.name);
  if (parts.stem == "head") return {{std::string(family.head), 0, spec.shape[0]}};
  const auto names = parts.layer.empty() ? family.outside : family.inside;
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const Name& name) { return name.ours == parts.stem; });
  if (found == names.end()) {
    throw Error(ErrorCode::invalid, "model_type: \"" + std::string(model_type) +
                                        "\" has no place for the parameter " + spec.name);
  }
  std::string prefix(found->of_head ? "" : family.base);
  if (!parts.layer.empty()) {
    prefix += std::string(family.layers) + std::string(parts.layer) + ".";
  }
  const auto count =
      static_cast<std::size_t>(std::count_if(found->theirs.begin(), found->theirs.end(),
                                             [](std::string_view name) { return !name.empty(); }));
  const std::vector<std::int64_t> rows = rows_of(spec, model, count);
  const bool transposed = family.transposed && !parts.layer.empty() && spec.shape.rank() == 2;
  std::vector<TensorPiece> pieces;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    pieces.push_back({prefix + std::string(found->theirs[i]) + "." + std::string(parts.kind), first,
                      rows[i], transposed});
    first += rows[i];
  }
  return pieces;
}

std::string model_type_of(const ModelConfig& model) {
  if (model.encoder) return model.first_position > 0 ? "roberta" : "bert";
  if (model.family == "gpt2") return "gpt2";
  if (model.fused_files) return "phi3";
  if (model.qk_norm) return "qwen3";
  if (model.norm_plus_one) return "gemma";
  if (model.qkv_bias && !model.out_bias) return "qwen2";
  return model.sliding_window > 0 ? "mistral" : "llama";
}

std::string_view base_prefix(std::string_view model_type) { return family_of(model_type).base; }

bool is_head(std::string_view tensor) {
  constexpr std::string_view kHeads[] = {"pooler.", "cls.", "classifier.", "lm_head.",
                                         "qa_outputs."};
  return std::any_of(std::begin(kHeads), std::end(kHeads), [&](std::string_view head) {
    return tensor.starts_with(head) || tensor.starts_with("bert." + std::string(head)) ||
           tensor.starts_with("roberta." + std::string(head));
  });
}

bool is_buffer(std::string_view tensor) {
  for (const std::string_view end :
       {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias", "embeddings.position_ids"}) {
    if (tensor.ends_with(end)) return true;
  }
  return false;
}

}  // namespace zl
