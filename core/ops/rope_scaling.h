// How Llama 3.1 stretches rotary positions to sequences longer than it was trained on.
// Ownership: a value. Threads: any.
#pragma once

namespace zl {

// Grattafiori et al. 2024, section 3.4.3; "rope_type": "llama3" of transformers
// (modeling_rope_utils.py). Frequencies whose wave is longer than original / low_freq are divided
// by factor, those below original / high_freq stay, between them a blend of both.
struct RopeScaling {
  double factor = 1;         // 1: not scaled
  double low_freq = 1;       // waves in the original sequence
  double high_freq = 4;      // likewise, above low_freq
  double original = 8192.0;  // positions

  // Radians per position. constexpr also lets kernels call it.
  constexpr double apply(double frequency) const {
    constexpr double kTwoPi = 6.283185307179586476925286766559;
    if (factor == 1) return frequency;
    const double waves = original * frequency / kTwoPi;
    if (waves < low_freq) return frequency / factor;
    if (waves > high_freq) return frequency;
    const double kept = (waves - low_freq) / (high_freq - low_freq);
    return (1 - kept) * frequency / factor + kept * frequency;
  }
};

}  // namespace zl
