#include "scenarios/files/gguf_tensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/text.h"

namespace zl {
namespace {

constexpr std::int64_t kPart = 1 << 20;  // elements read at once; a multiple of every block
constexpr std::size_t kMostNamed = 10;

using TensorShape = std::vector<std::int64_t>;

// What the model has, and what of it the file has.
class CopyList {
 public:
  CopyList(const GgufFile& file, const Json& config)
      : file_(file),
        family_(config["model_type"]),
        hidden_(config["hidden_size"]),
        inner_(config["intermediate_size"]),
        layers_(config["num_hidden_layers"]),
        head_(config["head_dim"]),
        query_(config["num_attention_heads"].get<std::int64_t>() * head_),
        key_(config["num_key_value_heads"].get<std::int64_t>() * head_),
        vocab_(config["vocab_size"]) {
    // Consumed by the config.
    for (const char* name :
         {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"}) {
      known_.insert(name);
    }
  }

  std::vector<GgufCopy> all() {
    add("token_embd", "model.embed_tokens", {vocab_, hidden_});
    for (std::int64_t layer = 0; layer < layers_ && problems_ < kMostNamed; ++layer) {
      add_layer("blk." + std::to_string(layer) + ".",
                "model.layers." + std::to_string(layer) + ".");
    }
    add_norm("output_norm", "model.norm", hidden_);
    if (file_.find("output.weight") != nullptr) add("output", "lm_head", {vocab_, hidden_});
    for (const GgufTensor& tensor : file_.tensors()) {
      if (known_.count(tensor.name) == 0) complain(tensor.name, "is not known");
    }
    if (problems_ > 0) file_.refuse("as a " + family_ + ", " + text_);
    return std::move(copies_);
  }

 private:
  void add_layer(const std::string& from, const std::string& to) {
    add_norm(from + "attn_norm", to + "input_layernorm", hidden_);
    const std::string attention = to + "self_attn.";
    if (family_ == "phi3") {
      add(from + "attn_qkv", attention + "qkv_proj", {query_ + 2 * key_, hidden_});
    } else {
      const bool pairs = family_ == "llama" || family_ == "mistral";
      add(from + "attn_q", attention + "q_proj", {query_, hidden_}, pairs ? head_ : 0);
      add(from + "attn_k", attention + "k_proj", {key_, hidden_}, pairs ? head_ : 0);
      add(from + "attn_v", attention + "v_proj", {key_, hidden_});
    }
    add(from + "attn_output", attention + "o_proj", {hidden_, query_});
    if (family_ == "qwen3") {
      add_norm(from + "attn_q_norm", attention + "q_norm", head_);
      add_norm(from + "attn_k_norm", attention + "k_norm", head_);
    }
    add_norm(from + "ffn_norm", to + "post_attention_layernorm", hidden_);
    if (family_ == "phi3") {
      add(from + "ffn_up", to + "mlp.gate_up_proj", {2 * inner_, hidden_});
    } else {
      add(from + "ffn_gate", to + "mlp.gate_proj", {inner_, hidden_});
      add(from + "ffn_up", to + "mlp.up_proj", {inner_, hidden_});
    }
    add(from + "ffn_down", to + "mlp.down_proj", {hidden_, inner_});
  }

  // A weight, and its bias where there is one.
  void add(const std::string& from, const std::string& to, const TensorShape& shape,
           std::int64_t head = 0) {
    add_tensor(from + ".weight", {nullptr, to + ".weight", shape, head});
    if (file_.find(from + ".bias") != nullptr) {
      add_tensor(from + ".bias", {nullptr, to + ".bias", {shape[0]}, head});
    }
  }

  void add_norm(const std::string& from, const std::string& to, std::int64_t size) {
    add_tensor(from + ".weight",
               {nullptr, to + ".weight", {size}, 0, family_ == "gemma" ? 1.0f : 0.0f});
  }

  void add_tensor(const std::string& from, GgufCopy copy) {
    known_.insert(from);
    copy.tensor = file_.find(from);
    if (copy.tensor == nullptr) return complain(from, "is missing");
    if (copy.tensor->shape != copy.shape) {
      return complain(from, "has the shape " + Json(copy.tensor->shape).dump() + ", not " +
                                Json(copy.shape).dump());
    }
    if (gguf_block(copy.tensor->type).bytes == 0) {
      return complain(from, "is of " + gguf_type_name(copy.tensor->type) +
                                ", which is not read; F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, "
                                "Q8_0, Q4_K, Q5_K and Q6_K are");
    }
    copies_.push_back(std::move(copy));
  }

  void complain(const std::string& name, const std::string& problem) {
    ++problems_;
    if (problems_ > kMostNamed) return;
    text_ += (text_.empty() ? "tensor " : "; ") + shortened(name) + " " + problem;
    if (problems_ == kMostNamed) text_ += "; and maybe more";
  }

  const GgufFile& file_;
  std::string family_;
  std::int64_t hidden_, inner_, layers_, head_, query_, key_, vocab_;
  std::vector<GgufCopy> copies_;
  std::set<std::string> known_;
  std::string text_;
  std::size_t problems_ = 0;
};

// Rows in pairs back into halves, for the rows of one head.
void unpair_rows(std::span<const float> pairs, std::int64_t head, std::span<float> halves) {
  const auto rows = static_cast<std::size_t>(head), columns = pairs.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t to = row % 2 * (rows / 2) + row / 2;
    std::copy_n(pairs.begin() + static_cast<std::ptrdiff_t>(row * columns), columns,
                halves.begin() + static_cast<std::ptrdiff_t>(to * columns));
  }
}

}  // namespace

std::vector<GgufCopy> gguf_copies(const GgufFile& file, const Json& config) {
  const std::int64_t head = config["head_dim"], heads = config["num_attention_heads"];
  const std::int64_t groups = config["num_key_value_heads"];
  constexpr std::int64_t kMost = 1 << 24;
  if (head < 2 || head % 2 != 0 || groups < 1 || std::max({head, heads, groups}) > kMost ||
      heads % groups != 0) {
    file.refuse(std::to_string(heads) + " heads of " + std::to_string(head) + " elements with " +
                std::to_string(groups) +
                " key heads: an even number of elements, and heads that "
                "are a multiple of the key heads, are needed");
  }
  return CopyList(file, config).all();
}

void read_copy(const GgufFile& file, const GgufCopy& copy,
               const std::function<void(std::span<const float>)>& take) {
  const std::int64_t total = copy.tensor->elements;
  const std::int64_t columns = copy.shape.size() == 2 ? copy.shape[1] : 1;
  const std::int64_t part = copy.head > 0 ? copy.head * columns : kPart;
  std::vector<float> values, halves;
  for (std::int64_t begin = 0; begin < total; begin += part) {
    values.resize(static_cast<std::size_t>(std::min(part, total - begin)));
    file.read(*copy.tensor, begin, values);
    for (float& value : values) value -= copy.minus;
    if (copy.head == 0) {
      take(values);
    } else {
      halves.resize(values.size());
      unpair_rows(values, copy.head, halves);
      take(halves);
    }
  }
}

}  // namespace zl
