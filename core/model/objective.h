// What a model is trained for: how ids become inputs and targets, and which rows count in the loss.
// Ownership: a value. Threads: immutable.
#pragma once

#include <cstdint>
#include <span>

namespace zl {

enum class ObjectiveKind : std::uint8_t { causal_language_model };

struct Objective {
  static constexpr std::int32_t kIgnored = -1;  // a target that does not count (padding)
  ObjectiveKind kind = ObjectiveKind::causal_language_model;

  // Rows of a micro-batch whose loss is averaged; at least 1, so that one without any has loss 0.
  std::int64_t counted_rows(std::span<const std::int32_t> targets) const;
};

}  // namespace zl
