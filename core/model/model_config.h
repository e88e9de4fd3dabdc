// The shape of a decoder-only transformer: the GPT-2 and the Llama family.
// Ownership: a value. Threads: immutable after construction.
#pragma once

#include <cstdint>
#include <string>

#include "core/ops/kinds.h"
#include "core/ops/rope_scaling.h"

namespace zl {

enum class PositionKind : std::uint8_t { learned, rope };

// GPT-2 (Radford et al. 2019): learned positions, LayerNorm with bias, GELU, biases everywhere,
// tied embeddings. Llama (Touvron et al. 2023): RoPE, RMSNorm, SwiGLU, no biases; grouped-query
// attention where kv_heads < heads. Qwen2 = Llama with qkv_bias; Mistral = Llama with
// sliding_window.
struct ModelConfig {
  std::string name;
  std::string family = "gpt2";  // gpt2 | llama
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;   // 0: equal to heads
  std::int64_t head_size = 0;  // 0: hidden / heads
  std::int64_t ffn = 0;        // width of the MLP; 0: 4 * hidden
  std::int64_t vocab = 0;
  std::int64_t max_sequence =
      1024;  // rows of the learned position table; the default sequence length
  NormKind norm = NormKind::layer_norm;
  ActivationKind activation = ActivationKind::gelu_tanh;
  PositionKind position = PositionKind::learned;
  bool tied_embeddings = true;
  bool qkv_bias = true;
  bool linear_bias = true;  // attention output and MLP biases
  double norm_epsilon = 1e-5;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  double dropout = 0.0;             // embedding and residual dropout
  double attention_dropout = 0.0;   // on the attention probabilities
  double init_std = 0.02;           // residual projections use init_std / sqrt(2 * layers)
  std::int64_t sliding_window = 0;  // 0: none. Only accepted when >= the sequence length.

  // Fills the defaulted zeros above; throws Error{invalid} naming the key when a size is missing,
  // heads do not divide hidden, kv_heads do not divide heads, head_size is odd under RoPE, or
  // rope_scaling is no scaling.
  void complete();

  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_size; }
  std::int64_t attention_width() const { return heads * head_size; }
  // Rows of the first MLP matrix: SwiGLU packs gate and up.
  std::int64_t ffn_in_width() const { return activation == ActivationKind::swiglu ? 2 * ffn : ffn; }

  std::int64_t parameters() const;            // exact count, tied weights once
  std::int64_t embedding_parameters() const;  // token + position tables (and an untied head's not)
  // Training FLOPs per token, convention "6N+12Lhs": 6 N + 12 L h s, N = all parameters but an
  // untied token table, which is looked up and multiplies nothing; attention not halved for
  // causality (Megatron-LM, torchtitan; the PaLM paper's appendix B).
  double flops_per_token(std::int64_t sequence_length) const;
};

}  // namespace zl
