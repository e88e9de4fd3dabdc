#include "core/rank/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

#include "tests/core/fake_device.h"

namespace zl {
namespace {

using test::FakeDevice;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr MemoryTag kTag = MemoryTag::activation;

struct PoolTest : testing::Test {
  Pool make_pool(std::int64_t budget = 0) {
    return Pool(device, MemorySpace::device, ledger, budget);
  }
  FakeDevice device;
  Ledger ledger;
};

TEST_F(PoolTest, ReservesASlabOfTheUsualSizeOnFirstUse) {
  Pool pool = make_pool();
  EXPECT_EQ(pool.reserved(), 0);
  Buffer small = pool.allocate(1, kTag, {"small"});
  EXPECT_EQ(pool.reserved(), Pool::kSlab);
  EXPECT_EQ(small.bytes(), 1);
  EXPECT_EQ(small.data(), device.slabs.begin()->first);
  Buffer huge = pool.allocate(3 * Pool::kSlab + 1, kTag, {"huge"});
  EXPECT_EQ(pool.reserved(), Pool::kSlab + 3 * Pool::kSlab + 2 * kMiB);
  EXPECT_EQ(ledger.total(MemorySpace::device), 1 + 3 * Pool::kSlab + 1);
}

TEST_F(PoolTest, BlocksAre512ByteGranulesAndTheLedgerCountsTheRequest) {
  Pool pool = make_pool();
  Buffer a = pool.allocate(513, kTag, {"a"});
  Buffer b = pool.allocate(0, kTag, {"b"});
  Buffer c = pool.allocate(512, kTag, {"c"});
  EXPECT_EQ(b.data() - a.data(), 1024);
  EXPECT_EQ(c.data() - b.data(), 512);
  EXPECT_EQ(ledger.total(MemorySpace::device), 1025);
}

TEST_F(PoolTest, TakesTheSmallestGapThatFitsThenTheLowest) {
  Pool pool = make_pool();
  Buffer wide = pool.allocate(4096, kTag, {});
  Buffer fence1 = pool.allocate(512, kTag, {});
  Buffer narrow = pool.allocate(1024, kTag, {});
  Buffer fence2 = pool.allocate(512, kTag, {});
  Buffer narrow_too = pool.allocate(1024, kTag, {});
  Buffer fence3 = pool.allocate(512, kTag, {});
  std::byte* const low = narrow.data();
  std::byte* const high = narrow_too.data();
  std::byte* const large = wide.data();
  wide.reset(), narrow_too.reset(), narrow.reset();
  Buffer first = pool.allocate(1000, kTag, {});
  Buffer second = pool.allocate(600, kTag, {});
  Buffer third = pool.allocate(600, kTag, {});
  EXPECT_EQ(first.data(), low);
  EXPECT_EQ(second.data(), high);
  EXPECT_EQ(third.data(), large);
}

TEST_F(PoolTest, FreedNeighboursMergeInEveryOrder) {
  std::vector<int> order = {0, 1, 2};
  do {
    Pool pool = make_pool();
    std::array<Buffer, 3> parts;
    for (Buffer& part : parts) part = pool.allocate(Pool::kSlab / 4, kTag, {});
    Buffer rest = pool.allocate(Pool::kSlab / 4, kTag, {});
    std::byte* const start = parts[0].data();
    for (const int i : order) parts[static_cast<std::size_t>(i)].reset();
    Buffer whole = pool.allocate(Pool::kSlab / 4 * 3, kTag, {});
    EXPECT_EQ(whole.data(), start);
    EXPECT_EQ(pool.reserved(), Pool::kSlab);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(PoolTest, AnAssignedBufferFreesWhatItHeld) {
  Pool pool = make_pool();
  Buffer a = pool.allocate(100, kTag, {}), b = pool.allocate(10, kTag, {});
  a = std::move(b);
  EXPECT_EQ(ledger.total(MemorySpace::device), 10);
  EXPECT_EQ(b.data(), nullptr);
  EXPECT_EQ(a.bytes(), 10);
}

TEST_F(PoolTest, TheBudgetBoundsReservedBytes) {
  Pool pool = make_pool(Pool::kSlab + 10 * kMiB);
  Buffer slab = pool.allocate(Pool::kSlab, kTag, {});
  Buffer rest = pool.allocate(10 * kMiB, kTag, {});  // a smaller slab: all that is left
  EXPECT_EQ(pool.reserved(), Pool::kSlab + 10 * kMiB);
  EXPECT_THROW(pool.allocate(1, kTag, {}), OutOfMemory);
  rest.reset();
  EXPECT_NO_THROW(pool.allocate(10 * kMiB, kTag, {}));
}

TEST_F(PoolTest, OutOfMemoryNamesRequestBudgetAndLargestHolders) {
  Pool pool = make_pool(8 * kMiB);
  Buffer weights = pool.allocate(4 * kMiB, MemoryTag::parameter, {"weights", 0});
  Buffer qkv = pool.allocate(2 * kMiB, MemoryTag::activation, {"qkv", 1});
  Buffer more = pool.allocate(kMiB, MemoryTag::activation, {"qkv", 2});
  try {
    pool.allocate(3 * kMiB, MemoryTag::activation, {"logits", 13});
    FAIL();
  } catch (const OutOfMemory& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), ErrorCode::infeasible);
    EXPECT_EQ(error.requested(), 3 * kMiB);
    for (const char* part :
         {"out of device memory", "3.00 MiB requested for 'logits' of unit 13", "7.00 MiB in use",
          "budget of 8.00 MiB", "parameter 'weights' 4.00 MiB, activation 'qkv' 3.00 MiB"}) {
      EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
    }
  }
  EXPECT_EQ(ledger.total(MemorySpace::device), 7 * kMiB);
}

TEST_F(PoolTest, ADeviceWithoutMoreMemoryIsOutOfMemoryToo) {
  FakeDevice small(FakeDevice::Placement::upwards, Pool::kSlab);
  Pool pool(small, MemorySpace::host, ledger, 0);
  Buffer first = pool.allocate(Pool::kSlab, kTag, {});
  EXPECT_THROW(pool.allocate(1, kTag, {}), OutOfMemory);
}

TEST_F(PoolTest, TheSlabsGoBackToTheDevice) {
  {
    Pool pool = make_pool();
    pool.allocate(1, kTag, {});
    EXPECT_EQ(device.reserved, Pool::kSlab);
  }
  EXPECT_EQ(device.reserved, 0);
  EXPECT_TRUE(device.slabs.empty());
}

// A random program: sizes from a few bytes to several slabs, about as many frees as allocations.
struct RandomProgram {
  struct Live {
    Buffer buffer;
    std::int64_t bytes;
  };

  explicit RandomProgram(unsigned seed) : random(seed) {}

  bool frees() { return !live.empty() && random() % 100 < 48; }
  std::int64_t size() { return static_cast<std::int64_t>(random() % (1u << (3 + random() % 24))); }
  void free_one() {
    auto victim = live.begin();
    std::advance(victim, random() % live.size());
    live.erase(victim);
  }

  std::mt19937 random;
  std::list<Live> live;
};

void expect_disjoint_within_slabs(const std::list<RandomProgram::Live>& live,
                                  const std::map<std::byte*, std::int64_t>& slabs) {
  std::vector<std::pair<std::byte*, std::byte*>> ranges;
  for (const auto& each : live) {
    ranges.emplace_back(each.buffer.data(),
                        each.buffer.data() + std::max<std::int64_t>(each.bytes, 1));
    auto slab = slabs.upper_bound(each.buffer.data());
    ASSERT_NE(slab, slabs.begin());
    --slab;
    ASSERT_LE(ranges.back().second, slab->first + slab->second);
    ASSERT_EQ((each.buffer.data() - slab->first) % Pool::kAlignment, 0);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    ASSERT_LE(ranges[i - 1].second, ranges[i].first);
  }
}

TEST_F(PoolTest, RandomProgramsNeverOverlapAndTheLedgerIsExact) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Pool pool = make_pool();
    RandomProgram program(seed);
    for (int step = 0; step < 400; ++step) {
      if (program.frees()) {
        program.free_one();
      } else {
        const std::int64_t bytes = program.size();
        program.live.push_back({pool.allocate(bytes, kTag, {}), bytes});
      }
      std::int64_t total = 0;
      for (const auto& each : program.live) total += each.bytes;
      ASSERT_EQ(ledger.total(MemorySpace::device), total);
      ASSERT_EQ(pool.reserved(), device.reserved);
      expect_disjoint_within_slabs(program.live, device.slabs);
    }
    // All free: everything has merged, so each slab serves one block of its own size again.
    program.live.clear();
    const std::int64_t reserved = pool.reserved();
    std::vector<std::int64_t> sizes;
    for (const auto& [data, bytes] : device.slabs) sizes.push_back(bytes);
    std::sort(sizes.rbegin(), sizes.rend());
    std::vector<Buffer> whole;
    for (const std::int64_t bytes : sizes) whole.push_back(pool.allocate(bytes, kTag, {}));
    ASSERT_EQ(pool.reserved(), reserved);
  }
}

// The same program gets the same slabs and offsets wherever the system puts the slabs.
TEST(PoolDeterminism, PlacementOfSlabsDoesNotMatter) {
  const auto history = [](FakeDevice::Placement placement, unsigned seed) {
    FakeDevice device(placement);
    Ledger ledger;
    Pool pool(device, MemorySpace::device, ledger, 0);
    RandomProgram program(seed);
    std::vector<std::pair<std::int64_t, std::int64_t>> blocks;  // offset in its slab, reserved
    for (int step = 0; step < 600; ++step) {
      if (program.frees()) {
        program.free_one();
        continue;
      }
      // Few sizes, so that equal gaps in different slabs compete.
      const std::int64_t bytes = (program.size() % 5 + 1) * 8 * kMiB;
      program.live.push_back({pool.allocate(bytes, kTag, {}), bytes});
      std::byte* data = program.live.back().buffer.data();
      blocks.emplace_back(data - std::prev(device.slabs.upper_bound(data))->first, pool.reserved());
    }
    return blocks;
  };
  for (unsigned seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(history(FakeDevice::Placement::upwards, seed),
              history(FakeDevice::Placement::downwards, seed));
  }
}

}  // namespace
}  // namespace zl
