#include "core/data/text/pair_merges.h"

#include <cstddef>
#include <functional>
#include <queue>
#include <utility>

namespace zl {
namespace {

constexpr std::int32_t kMerged = -1;  // it belongs to the token on its left

// A pair that may be merged, stale once either side has changed; the best-ranked comes first.
struct MergeCandidate {
  std::int32_t rank;
  std::int32_t merged;
  std::size_t left;
  std::uint64_t pair;

  bool operator>(const MergeCandidate& other) const {
    return std::pair(rank, left) > std::pair(other.rank, other.left);
  }
};

std::uint64_t key_of_pair(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
}

}  // namespace

void PairMerges::add(std::int32_t left, std::int32_t right, std::int32_t rank,
                     std::int32_t merged) {
  merges_.try_emplace(key_of_pair(left, right), Merge{rank, merged});
}

void PairMerges::apply(std::vector<std::int32_t>& tokens) const {
  const std::size_t size = tokens.size();
  std::vector<std::size_t> next(size), previous(size);
  std::priority_queue<MergeCandidate, std::vector<MergeCandidate>, std::greater<>> candidates;
  const auto propose = [&](std::size_t left) {
    if (next[left] == size) return;
    const std::uint64_t pair = key_of_pair(tokens[left], tokens[next[left]]);
    if (const auto found = merges_.find(pair); found != merges_.end()) {
      candidates.push({found->second.rank, found->second.merged, left, pair});
    }
  };
  for (std::size_t i = 0; i < size; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;
  }
  for (std::size_t i = 0; i < size; ++i) propose(i);
  while (!candidates.empty()) {
    const MergeCandidate best = candidates.top();
    candidates.pop();
    const std::size_t left = best.left;
    const std::size_t right = next[left];
    const bool stale = tokens[left] == kMerged || right == size ||
                       key_of_pair(tokens[left], tokens[right]) != best.pair;
    if (stale) continue;
    tokens[left] = best.merged;
    tokens[right] = kMerged;
    next[left] = next[right];
    if (next[left] < size) previous[next[left]] = left;
    propose(left);
    if (left > 0) propose(previous[left]);
  }
  std::erase(tokens, kMerged);
}

}  // namespace zl
