#include "backends/cpu/ops/random_fill.h"
#include "core/ops/dropout_spec.h"

#include <algorithm>

namespace zl::cpu {

void random_words(const RngKey& key, std::uint64_t first, std::int64_t count,
                  std::uint32_t* words) {
  // Philox makes four words per counter; whole counters are drawn, the ends cut off.
  std::uint32_t drawn[kRandomBlock + 8];
  const std::uint64_t skip = first & 3;
  const std::uint64_t counter = first >> 2;
  const std::int64_t groups = (static_cast<std::int64_t>(skip) + count + 3) / 4;
  const std::uint64_t high = (std::uint64_t{key.stream} << 32) | key.step;
  for (std::int64_t group = 0; group < groups; ++group) {
    const Philox4 four = philox(key.seed, counter + static_cast<std::uint64_t>(group), high);
    for (int word = 0; word < 4; ++word) drawn[4 * group + word] = four.word[word];
  }
  std::copy_n(drawn + skip, count, words);
}

template <class A>
void apply_dropout(const DropoutSpec& spec, std::uint64_t first, std::int64_t count, A* values) {
  if (spec.p <= 0) return;
  const A scale = A{1} / (A{1} - static_cast<A>(spec.p));
  const float p = spec.p;
  for (std::int64_t start = 0; start < count; start += kRandomBlock) {
    const std::int64_t length = std::min(kRandomBlock, count - start);
    std::uint32_t words[kRandomBlock];
    random_words(spec.key, spec.base + first + static_cast<std::uint64_t>(start), length, words);
    A* block = values + start;
    for (std::int64_t i = 0; i < length; ++i) {
      const float uniform = static_cast<float>(words[i] >> 8) * 0x1p-24f;
      block[i] = uniform >= p ? block[i] * scale : A{0};
    }
  }
}

template void apply_dropout(const DropoutSpec&, std::uint64_t, std::int64_t, float*);
template void apply_dropout(const DropoutSpec&, std::uint64_t, std::int64_t, double*);

}  // namespace zl::cpu
