// How rotary positions are stretched to sequences longer than a model was first trained on.
// Ownership: a value. Threads: any.
#pragma once

#include <vector>

#include "core/ops/kinds.h"

namespace zl {

// The kinds of "rope_type" of transformers (modeling_rope_utils.py); the fields that a kind does
// not name are not looked at. What becomes of them: rope_table.h.
struct RopeScaling {
  RopeKind kind = RopeKind::none;
  double factor = 1;       // all kinds: how many times longer
  double original = 8192;  // positions before; of `dynamic` those that need no stretching
  // llama3 (Grattafiori et al. 2024, section 3.4.3): waves in the original sequence, below which a
  // frequency is divided and above which it stays.
  double low_freq = 1, high_freq = 4;
  // yarn (Peng et al. 2023): turns in the original sequence, below beta_slow of which a frequency
  // is divided and above beta_fast stays; truncate: the pairs in between begin and end at whole
  // ones.
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;
  double mscale = 0, mscale_all_dim = 0;  // yarn: of the multiplier, where both are given
  double attention_factor = 0;            // yarn, longrope: the multiplier; 0: made of factor
  // longrope (Ding et al. 2024): what divides each frequency in sequences up to `original`, and in
  // longer ones.
  std::vector<double> short_factors, long_factors;

  bool operator==(const RopeScaling&) const = default;
};

}  // namespace zl
