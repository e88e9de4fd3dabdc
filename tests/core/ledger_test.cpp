#include "core/rank/ledger.h"

#include <gtest/gtest.h>

#include <numeric>

namespace zl {
namespace {

std::int64_t sum(const Ledger::Tags& tags) {
  return std::accumulate(tags.begin(), tags.end(), std::int64_t{0});
}

std::int64_t of(const Ledger::Tags& tags, MemoryTag tag) {
  return tags[static_cast<std::size_t>(tag)];
}

TEST(Ledger, BreakdownIsThatOfTheFirstMomentOfThePeak) {
  Ledger ledger;
  ledger.add(MemorySpace::device, MemoryTag::parameter, 100);
  ledger.add(MemorySpace::device, MemoryTag::activation, 50);
  ledger.remove(MemorySpace::device, MemoryTag::activation, 50);
  ledger.add(MemorySpace::device, MemoryTag::workspace, 50);  // the same total again
  EXPECT_EQ(ledger.peak(MemorySpace::device), 150);
  EXPECT_EQ(of(ledger.at_peak(MemorySpace::device), MemoryTag::activation), 50);
  EXPECT_EQ(of(ledger.at_peak(MemorySpace::device), MemoryTag::workspace), 0);
  EXPECT_EQ(of(ledger.current(MemorySpace::device), MemoryTag::workspace), 50);
  EXPECT_EQ(sum(ledger.at_peak(MemorySpace::device)), ledger.peak(MemorySpace::device));

  ledger.add(MemorySpace::device, MemoryTag::staging, 1);
  EXPECT_EQ(ledger.peak(MemorySpace::device), 151);
  EXPECT_EQ(of(ledger.at_peak(MemorySpace::device), MemoryTag::activation), 0);
  EXPECT_EQ(of(ledger.at_peak(MemorySpace::device), MemoryTag::workspace), 50);
}

TEST(Ledger, SpacesAreSeparate) {
  Ledger ledger;
  ledger.add(MemorySpace::device, MemoryTag::parameter, 3);
  ledger.add(MemorySpace::host, MemoryTag::optimizer, 5);
  EXPECT_EQ(ledger.total(MemorySpace::device), 3);
  EXPECT_EQ(ledger.total(MemorySpace::pinned_host), 0);
  EXPECT_EQ(ledger.total(MemorySpace::host), 5);
  EXPECT_EQ(of(ledger.at_peak(MemorySpace::host), MemoryTag::parameter), 0);
}

}  // namespace
}  // namespace zl
