// The variants of ops that a model's configuration names; light, because that configuration is seen
// almost everywhere. Ownership: values. Threads: values.
#pragma once

#include <cstdint>

namespace zl {

enum class NormKind : std::uint8_t { layer_norm, rms_norm };
enum class ActivationKind : std::uint8_t { gelu_tanh, gelu_erf, swiglu };

}  // namespace zl
