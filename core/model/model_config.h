// The shape of a transformer: decoders of the GPT-2 family and of Llama's with those that followed
// it, and BERT's encoders. Ownership: a value. Threads: immutable after construction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ops/kinds.h"
#include "core/ops/rope_scaling.h"

namespace zl {

enum class PositionKind : std::uint8_t { learned, rope };

// What the last unit makes of the rows: the token that follows; the token that was hidden (MLM); or
// of each sequence, by its first row, one of a few labels.
enum class HeadKind : std::uint8_t { next_token, masked_token, label };

// GPT-2 (Radford et al. 2019): learned positions, LayerNorm with bias, GELU, biases everywhere,
// tied embeddings. Llama (Touvron et al. 2023): RoPE, RMSNorm, SwiGLU, no biases; grouped-query
// attention where kv_heads < heads. Qwen2 = Llama with qkv_bias; Mistral and Phi-3 = Llama with
// sliding_window; Qwen3 = Llama with qk_norm; Gemma = Llama with geglu_tanh, norm_plus_one and
// scaled_embedding. BERT (Devlin et al. 2019) = GPT-2 that is an encoder with segments and an
// exact gelu; RoBERTa (Liu et al. 2019) = BERT with one segment whose positions begin at 2.
struct ModelConfig {
  std::string name;
  std::string family = "gpt2";  // gpt2 | llama | bert
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;   // 0: equal to heads
  std::int64_t head_size = 0;  // 0: hidden / heads
  std::int64_t ffn = 0;        // width of the MLP; 0: 4 * hidden
  std::int64_t vocab = 0;
  std::int64_t max_sequence =
      1024;  // rows of the learned position table; the default sequence length
  // Norms follow the additions to the stream, the embeddings have one too, and attention sees all
  // of a sequence: before and after, up to its padding.
  bool encoder = false;
  std::int64_t segments = 0;        // rows of the table of segments (token types); 0: none
  std::int64_t first_position = 0;  // row of the position table of a sequence's first token
  HeadKind head = HeadKind::next_token;
  std::int64_t labels = 0;       // of HeadKind::label
  double label_dropout = 0.0;    // on what the labels are told by
  bool drops_first_row = false;  // the same on the row before it is pooled (RoBERTa)
  NormKind norm = NormKind::layer_norm;
  ActivationKind activation = ActivationKind::gelu_tanh;
  PositionKind position = PositionKind::learned;
  bool tied_embeddings = true;
  bool qkv_bias = true;
  bool out_bias = true;  // of the attention's output
  bool mlp_bias = true;
  bool qk_norm = false;           // RMSNorm of query and key heads before their rotary positions
  bool norm_plus_one = false;     // norms multiply by 1 + weight
  bool scaled_embedding = false;  // tokens' rows times sqrt(hidden), rounded to the weights' type
  // Files have q, k and v in one tensor, and gate and up, as Phi-3's; to the model it is the same.
  bool fused_files = false;
  double norm_epsilon = 1e-5;
  double rope_theta = 10000.0;
  double rotary_fraction = 1;  // of a head's elements, the first ones
  RopeScaling rope_scaling;
  double dropout = 0.0;             // embedding and residual dropout
  double attention_dropout = 0.0;   // on the attention probabilities
  double init_std = 0.02;           // residual projections use init_std / sqrt(2 * layers)
  std::int64_t sliding_window = 0;  // keys that a query sees, its own included; 0: all before it
  std::vector<std::int64_t> sliding_layers;  // where it holds, ascending from 0; empty: everywhere

  bool operator==(const ModelConfig&) const = default;

  // Fills the defaulted zeros above; throws Error{invalid} naming the key when a size is missing,
  // the head is not one of an encoder's or the other way round,
  // heads do not divide hidden, kv_heads do not divide heads, what RoPE turns of a head is odd,
  // rope_scaling is no scaling, or sliding_layers are no layers.
  void complete();

  // Whether a head of tokens multiplies with the table of tokens.
  bool ties_head() const { return tied_embeddings && head != HeadKind::label; }
  // The most tokens that learned positions take.
  std::int64_t positions() const { return max_sequence - first_position; }
  // The most tokens of a text that the model was made for, as far as rope_scaling stretches them.
  std::int64_t scaled_positions() const;
  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_size; }
  std::int64_t attention_width() const { return heads * head_size; }
  // Rows of the first MLP matrix: a gated one packs gate and up.
  std::int64_t ffn_in_width() const { return is_gated(activation) ? 2 * ffn : ffn; }
  // Elements of a head that rotary positions turn.
  std::int64_t rotary_width() const;
  // The window of a layer, counted from 0; 0: none.
  std::int64_t window_of(std::int64_t layer) const;

  std::int64_t parameters() const;  // exact count, tied weights once
  // Token, position and segment tables, and their norm's (an untied head's not).
  std::int64_t embedding_parameters() const;
  std::int64_t head_parameters() const;  // final norm and head, what is tied not
  // Training FLOPs per token, convention "6N+12Lhs": 6 N + 12 L h s, N = all parameters but an
  // untied token table, which is looked up and multiplies nothing; attention not halved for
  // causality (Megatron-LM, torchtitan; the PaLM paper's appendix B). h: all heads' elements; s: in
  // a layer with a window no more than that.
  double flops_per_token(std::int64_t sequence_length) const;
};

}  // namespace zl
