// Byte-pair encoding's loop: pairs of neighbouring tokens become one, best rank first.
// Ownership: owns its table. Threads: immutable once built; share it freely.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace zl {

class PairMerges {
 public:
  // A pair given again keeps its first rank.
  void add(std::int32_t left, std::int32_t right, std::int32_t rank, std::int32_t merged);

  // Merges the best-ranked pair, the leftmost among equals, until no pair can be merged (Sennrich
  // et al. 2016, algorithm 1). O(n log n): real texts hold words of 100 kB (base64, DNA). Ids are
  // not negative.
  void apply(std::vector<std::int32_t>& tokens) const;

 private:
  struct Merge {
    std::int32_t rank;
    std::int32_t merged;
  };

  std::unordered_map<std::uint64_t, Merge> merges_;  // by (left id << 32 | right id)
};

}  // namespace zl
