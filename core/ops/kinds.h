// The variants of ops that a model's configuration names; light, because that configuration is seen
// almost everywhere. Ownership: values. Threads: values.
#pragma once

#include <cstdint>

namespace zl {

enum class NormKind : std::uint8_t { layer_norm, rms_norm };
enum class ActivationKind : std::uint8_t { gelu_tanh, gelu_erf, swiglu, geglu_tanh, tanh };
// Whether the MLP's first matrix makes a gate and what it gates.
constexpr bool is_gated(ActivationKind kind) {
  return kind == ActivationKind::swiglu || kind == ActivationKind::geglu_tanh;
}
enum class RopeKind : std::uint8_t { none, linear, dynamic, llama3, yarn, longrope };
enum class AttentionMaskKind : std::uint8_t {
  causal,  // the keys up to the query's position
  full,
  window,        // the last `window` of these, the query's own included
  lengths,       // of each sequence its first keys, before and after the query (padding)
  blocks,        // those of the blocks of a layout (BlockTable)
  causal_blocks  // of these, the keys up to the query's position
};

}  // namespace zl
