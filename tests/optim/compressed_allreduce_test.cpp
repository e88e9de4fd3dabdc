// The 1-bit all-reduce: golden vectors of DeepSpeed's arithmetic, its invariant, and the bytes it
// sends.
#include "core/optim/compressed_allreduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <random>

#include "backends/cpu/world.h"
#include "core/ops/elementwise.h"

namespace zl::test {
namespace {

constexpr auto kPerParameter = CompressedAllReduce::Scale::per_parameter;
constexpr auto kShared = CompressedAllReduce::Scale::shared;

void run_ranks(int ranks, const std::function<void(RankContext&)>& program, int threads = 1) {
  cpu::make_world({.ranks = ranks, .threads_per_rank = threads})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    program(context);
  });
}

// One rank's side: parameters of some counts, their values in host vectors without padding.
class Party {
 public:
  Party(RankContext& context, const std::vector<std::int64_t>& counts,
        CompressedAllReduce::Scale scale = kPerParameter)
      : partition(counts, context.ranks(), context.rank()), reduce(context, partition, scale) {
    values = context.allocate(DType::f32, Shape{partition.full_elements()}, MemoryTag::optimizer,
                              {"values"});
    context.run(Fill{values, 0});
  }

  std::vector<std::vector<float>> call(const std::vector<std::vector<float>>& x) {
    for (int p = 0; p < static_cast<int>(x.size()); ++p) {
      const auto& one = x[static_cast<std::size_t>(p)];
      std::copy(one.begin(), one.end(), partition.padded(values, p).as<float>());
    }
    reduce.run(values);
    return read(values);
  }

  // Of a full buffer; fails the test where padding is not 0.
  std::vector<std::vector<float>> read(const TensorView& full) const {
    std::vector<std::vector<float>> result;
    for (int p = 0; p < static_cast<int>(partition.size()); ++p) {
      const float* data = partition.padded(full, p).as<float>();
      result.emplace_back(data, data + partition.slot(p).count);
      for (std::int64_t i = partition.slot(p).count; i < partition.slot(p).padded; ++i) {
        EXPECT_EQ(data[i], 0.0f) << "padding " << i;
      }
    }
    return result;
  }

  Partition partition;
  CompressedAllReduce reduce;
  Tensor values;
};

TEST(CompressedAllReduce, GivesTheGoldenVectorsOfTwoRanks) {
  struct Golden {
    float low, high;  // magnitudes of the two chunks
    const char* signs;
  };
  const Golden golden[] = {{2.054886f, 2.554886f, "--------++++++++"},
                           {2.733747f, 2.983027f, "------++--++++++"},
                           {2.867895f, 3.552494f, "-----+--++-+++++"}};
  run_ranks(2, [&](RankContext& context) {
    Party party(context, {16});
    std::vector<float> x(16, 0.5f);
    if (context.rank() == 0) {
      for (int j = 0; j < 16; ++j) x[static_cast<std::size_t>(j)] = static_cast<float>(j) - 7.5f;
    }
    for (const Golden& expected : golden) {
      const std::vector<float> result = party.call({x})[0];
      for (std::size_t j = 0; j < 16; ++j) {
        const float size = j < 8 ? expected.low : expected.high;
        EXPECT_NEAR(result[j], expected.signs[j] == '+' ? size : -size, 1e-6) << j;
      }
    }
    if (context.rank() == 1) {
      EXPECT_EQ(party.read(party.reduce.worker_error())[0], std::vector<float>(16, 0.0f));
    }
  });
}

// Sum of results = sum of averages - mean worker error - server error, element by element.
void expect_invariant(int ranks, const std::vector<std::int64_t>& counts,
                      CompressedAllReduce::Scale scale) {
  constexpr int kCalls = 40;
  std::int64_t all = 0;
  for (const std::int64_t count : counts) all += count;
  const auto size = static_cast<std::size_t>(all);
  std::vector<double> given(size), errors(size), results(size);
  std::mutex mutex;
  run_ranks(ranks, [&](RankContext& context) {
    Party party(context, counts, scale);
    std::mt19937 random(static_cast<unsigned>(100 + context.rank()));
    std::normal_distribution<float> normal(0.3f, 1.0f);
    std::vector<double> mine(size), got(size);
    for (int call = 0; call < kCalls; ++call) {
      std::vector<std::vector<float>> x;
      std::size_t at = 0;
      for (const std::int64_t count : counts) {
        x.emplace_back(static_cast<std::size_t>(count));
        for (float& value : x.back()) mine[at++] += double{value = normal(random)};
      }
      at = 0;
      for (const auto& one : party.call(x)) {
        for (const float value : one) got[at++] += double{value};
      }
    }
    const std::lock_guard lock(mutex);
    std::size_t at = 0;
    for (int p = 0; p < static_cast<int>(counts.size()); ++p) {
      const Partition::Slot& slot = party.partition.slot(p);
      const float* worker = party.partition.padded(party.reduce.worker_error(), p).as<float>();
      const float* server = party.partition.shard(party.reduce.server_error(), p).as<float>();
      for (std::int64_t i = 0; i < slot.count; ++i, ++at) {
        given[at] += mine[at] / ranks;
        if (ranks > 1) errors[at] += double{worker[i]} / ranks;
        if (ranks > 1 && i / slot.chunk == context.rank())
          errors[at] += double{server[i % slot.chunk]};
        if (context.rank() == 0) results[at] = got[at];
      }
    }
  });
  for (std::size_t i = 0; i < size; ++i) {
    EXPECT_NEAR(results[i], given[i] - errors[i], 2e-4) << ranks << " ranks, element " << i;
  }
}

TEST(CompressedAllReduce, LosesNothingForGood) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const auto scale : {kPerParameter, kShared}) {
      // Odd, shorter than the ranks, whole bytes, longer than a block.
      expect_invariant(ranks, {37, 1, 64, 3, 2500}, scale);
    }
  }
}

TEST(CompressedAllReduce, EveryRankGetsTheSameBitsWhateverItsThreads) {
  std::vector<std::vector<float>> first;
  std::mutex mutex;
  for (const int threads : {1, 3}) {
    run_ranks(
        3,
        [&](RankContext& context) {
          Party party(context, {40001, 5});
          std::mt19937 random(static_cast<unsigned>(context.rank()));
          std::normal_distribution<float> normal;
          std::vector<std::vector<float>> x{std::vector<float>(40001), std::vector<float>(5)};
          for (auto& one : x) {
            for (float& value : one) value = normal(random);
          }
          party.call(x);
          const auto result = party.call(x);
          const std::lock_guard lock(mutex);
          if (first.empty()) first = result;
          EXPECT_EQ(first, result);
        },
        threads);
  }
}

TEST(CompressedAllReduce, OneRankKeepsItsValues) {
  run_ranks(1, [](RankContext& context) {
    Party party(context, {5});
    const std::vector<float> x{1, -2, 3, 0, 5};
    EXPECT_EQ(party.call({x})[0], x);
    EXPECT_TRUE(party.reduce.worker_error().empty());
  });
}

// A single scale weighs all parameters alike: the squared scale of the signs is the mean square.
TEST(CompressedAllReduce, SharedScaleIsTheNormOfAllParameters) {
  run_ranks(2, [](RankContext& context) {
    Party party(context, {16, 48}, kShared);
    const auto result = party.call({std::vector<float>(16, 3.0f), std::vector<float>(48, -1.0f)});
    const double scale = std::sqrt((16 * 9.0 + 48 * 1.0) / 64);
    for (const float value : result[0]) EXPECT_NEAR(value, scale, 1e-6);
    for (const float value : result[1]) EXPECT_NEAR(value, -scale, 1e-6);
  });
}

// Where chunks are whole bytes: exactly a sixteenth of what an all-reduce of 16-bit gradients
// sends.
TEST(CompressedAllReduce, SendsASixteenthOfSixteenBits) {
  for (const int ranks : {2, 4, 8}) {
    run_ranks(ranks, [&](RankContext& context) {
      const std::int64_t count = 8 * ranks * 100;
      Party party(context, {count, 2 * count});
      const std::size_t before = context.trace().events().size();
      party.reduce.run(party.values);
      std::int64_t data = 0, control = 0;
      for (std::size_t i = before; i < context.trace().events().size(); ++i) {
        const TraceEvent& event = context.trace().events()[i];
        if (event.type != EventType::collective) continue;
        (event.purpose == static_cast<std::uint8_t>(Purpose::data) ? data : control) +=
            event.wire_bytes;
      }
      const TensorView half{nullptr, DType::bf16, Shape{3 * count}};
      EXPECT_EQ(16 * data, wire_bytes(CollectiveKind::all_reduce, {half, half}, ranks));
      EXPECT_EQ(control, 2 * (ranks - 1) * 2 * 4);  // two exchanges of two scales
    });
  }
}

TEST(CompressedAllReduce, ErrorsAreOptimizerMemory) {
  run_ranks(4, [](RankContext& context) {
    const auto held = [&] {
      return context.ledger().current(
          MemorySpace::device)[static_cast<std::size_t>(MemoryTag::optimizer)];
    };
    const std::int64_t before = held();
    const Partition partition(std::vector<std::int64_t>{4000}, 4, context.rank());
    const CompressedAllReduce reduce(context, partition, kPerParameter);
    EXPECT_EQ(held() - before, 4000 * 4 + 1000 * 4);
  });
}

}  // namespace
}  // namespace zl::test
