// The property that lets one rank be recorded for many (DESIGN 4): every rank of small worlds is
// recorded and compared with the representative of its class.
#include "simulator/rank_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "core/base/error.h"
#include "core/data/token_source.h"
#include "core/model/parameters.h"
#include "core/parallel/partition.h"
#include "core/train/rank_program.h"
#include "simulator/storage.h"
#include "simulator/timeline.h"
#include "simulator/world.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

constexpr int kTrials = 40;

struct Trial {
  ModelConfig model;
  Strategy strategy;
  int ranks = 1;
  std::string name;
};

ModelConfig random_model(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<int> values) {
    return *(values.begin() + random() % values.size());
  };
  ModelConfig model;
  model.layers = one_of({1, 2, 3});
  model.hidden = one_of({4, 8, 12, 32});
  model.heads = 2;
  model.ffn = one_of({5, 16, 40});
  model.vocab = 3 + static_cast<int>(random() % 80);
  model.max_sequence = one_of({1, 7, 8});
  model.tied_embeddings = random() % 2 == 0;
  if (random() % 2 == 0) {
    model.norm = NormKind::rms_norm;
    model.activation = ActivationKind::swiglu;
    model.position = PositionKind::rope;
    model.head_size = 2 * one_of({1, 4});
    model.qkv_bias = model.out_bias = model.mlp_bias = false;
  }
  model.complete();
  return model;
}

Strategy random_strategy(std::mt19937& random) {
  const auto coin = [&] { return random() % 2 == 0; };
  Strategy s;
  s.zero.stage = static_cast<int>(random() % 4);
  s.precision.compute_dtype = coin() ? DType::f32 : DType::bf16;
  s.gradient_accumulation = 1 + static_cast<int>(random() % 3);
  s.zero.overlap_comm = coin();
  s.zero.reduce_bucket_size = coin() ? 500 : 500'000;
  s.zero.prefetch_bucket_size = coin() ? 500 : 500'000;
  s.zero.param_persistence_threshold = coin() ? 0 : 20;
  s.zero.quantized_gradients = s.zero.stage > 0 && coin();
  s.zero.quantized_weights = s.zero.stage == 3 && coin();
  if (s.zero.stage < 2 && coin()) {
    constexpr OptimizerKind kOnebit[] = {OptimizerKind::onebit_adam, OptimizerKind::zero_one_adam,
                                         OptimizerKind::onebit_lamb};
    s.optimizer.kind = kOnebit[random() % 3];
    s.optimizer.onebit.freeze_step = 2;
    s.zero.quantized_gradients = false;
    if (!stage_conflict(s).empty()) s.zero.stage = 0;
  } else if (s.zero.stage > 0 && coin()) {
    s.zero.quantized_gradients = false;
    s.offload.optimizer = coin() ? Tier::cpu : Tier::nvme;
    s.offload.nvme_path = "recorded";
    s.offload.sub_group_size = coin() ? 100 : 1'000'000;
    if (s.zero.stage == 3 && coin()) s.offload.parameters = coin() ? Tier::cpu : Tier::nvme;
    if (s.offload.parameters == Tier::nvme) s.offload.max_in_cpu = coin() ? 0 : 300;
  } else if (coin()) {
    s.optimizer.kind = OptimizerKind::lamb;
  }
  return s;
}

Trial random_trial(unsigned seed) {
  std::mt19937 random(seed);
  Trial trial;
  trial.model = random_model(random);
  trial.strategy = random_strategy(random);
  trial.ranks = 1 + static_cast<int>(random() % 64);
  const Strategy& s = trial.strategy;
  trial.name = "seed " + std::to_string(seed) + ": zero-" + std::to_string(s.zero.stage) +
               ", optimizer " + std::to_string(static_cast<int>(s.optimizer.kind)) + ", offload " +
               std::to_string(static_cast<int>(s.offload.optimizer)) +
               std::to_string(static_cast<int>(s.offload.parameters)) + ", " +
               std::to_string(trial.ranks) + " ranks";
  return trial;
}

std::vector<RankOutcome> record_every_rank(const Trial& trial) {
  SimOptions sim;
  for (int rank = 0; rank < trial.ranks; ++rank) sim.recorded.push_back(rank);
  ProgramOptions options;
  options.steps = 4;
  options.sequence_length = trial.model.max_sequence;
  options.recorded_steps = kSteadySteps;
  options.make_storage = [](const Strategy&, int) { return std::make_unique<Storage>(); };
  const TokenSource data = TokenSource::synthetic(trial.model.vocab, 7);
  std::vector<RankOutcome> outcomes;
  make_world({.ranks = trial.ranks}, sim)->run([&](RankHandle handle) {
    EXPECT_EQ(handle.communicator.rank(), static_cast<int>(outcomes.size()));
    outcomes.push_back(run_rank(handle, trial.model, trial.strategy, data, options));
  });
  return outcomes;
}

// All that a rank's books hold but the seconds that the recording took.
void expect_same_books(const RunResult& a, const RunResult& b, const std::string& where) {
  EXPECT_EQ(a.op_sequence_hash, b.op_sequence_hash) << where;
  EXPECT_EQ(a.op_count, b.op_count) << where;
  EXPECT_EQ(a.wire_bytes_per_step, b.wire_bytes_per_step) << where;
  EXPECT_EQ(a.peak_device.tag, b.peak_device.tag) << where;
  EXPECT_EQ(a.peak_host.tag, b.peak_host.tag) << where;
  EXPECT_EQ(a.peak_nvme.tag, b.peak_nvme.tag) << where;
  EXPECT_EQ(a.reserved_device, b.reserved_device) << where;
  EXPECT_EQ(a.reserved_host, b.reserved_host) << where;
  EXPECT_EQ(a.steps, b.steps) << where;
  EXPECT_EQ(a.skipped_steps, b.skipped_steps) << where;
  EXPECT_EQ(a.learning_rate, b.learning_rate) << where;
  EXPECT_EQ(a.loss_scale, b.loss_scale) << where;
  EXPECT_EQ(a.warnings, b.warnings) << where;
  ASSERT_EQ(a.communication.size(), b.communication.size()) << where;
  for (std::size_t i = 0; i < a.communication.size(); ++i) {
    const CollectiveTotals &x = a.communication[i], &y = b.communication[i];
    EXPECT_EQ(std::tie(x.collective, x.group, x.axis, x.link, x.count, x.bytes),
              std::tie(y.collective, y.group, y.axis, y.link, y.count, y.bytes))
        << where;
  }
}

// What fills the ledger, in order; with equal addresses the pools placed them alike.
auto memory_of(const Trace& trace) {
  std::vector<std::tuple<EventType, MemorySpace, int, std::int64_t, std::int64_t>> events;
  for (const TraceEvent& event : trace.events()) {
    if (event.type != EventType::allocate && event.type != EventType::free) continue;
    events.emplace_back(event.type, event.space, event.kind, event.bytes_written, event.id);
  }
  return events;
}

std::vector<RankClass> classes_of_trial(const Trial& trial) {
  return classes_of(Mesh::data_parallel(trial.ranks), {ParameterTable(trial.model).counts()});
}

class RankClasses : public testing::Test {
 protected:
  unsigned first_seed = std::random_device{}();
};

TEST_F(RankClasses, EveryRankRecordsWhatItsRepresentativeDoes) {
  int trials_with_different_programs = 0, ranks_of_padding = 0;
  for (int i = 0; i < kTrials && !HasFailure(); ++i) {
    const Trial trial = random_trial(first_seed + static_cast<unsigned>(i));
    const std::vector<RankOutcome> outcomes = record_every_rank(trial);
    std::set<std::uint64_t> programs;
    for (const RankClass& each : classes_of_trial(trial)) {
      const auto& first = outcomes[static_cast<std::size_t>(each.representative())];
      programs.insert(first.trace.sequence_hash());
      for (const int rank : each.ranks) {
        const std::string where = trial.name + ", rank " + std::to_string(rank) + " as " +
                                  std::to_string(each.representative());
        const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
        EXPECT_EQ(outcome.trace.sequence_hash(), first.trace.sequence_hash()) << where;
        EXPECT_EQ(memory_of(outcome.trace), memory_of(first.trace)) << where;
        expect_same_books(outcome.result, first.result, where);
        const Partition partition(ParameterTable(trial.model).counts(), trial.ranks, rank);
        ranks_of_padding += partition.owned_count(0) == 0 ? 1 : 0;
      }
    }
    trials_with_different_programs += programs.size() > 1 ? 1 : 0;
  }
  // Else the property would hold of one class for all.
  EXPECT_GT(trials_with_different_programs, kTrials / 4);
  EXPECT_GT(ranks_of_padding, 0);
}

// Set-up is apart: there, ranks with padding in files write zeros that the first has none of.
std::int64_t ops_of_steps(const Trace& trace) {
  return std::count_if(trace.events().begin(), trace.events().end(), [](const TraceEvent& event) {
    return event.type == EventType::op && event.scope.step != StepPrice::kSetup;
  });
}

// Why it is enough to record the first rank of a stage: no other holds or sends more, or makes it
// wait in the steps that count (the first warms up).
TEST_F(RankClasses, TheFirstRankOfAStageSpeaksForIt) {
  ClusterSpec cluster = test::plain_cluster();
  cluster.device.launch_seconds = 3e-6;
  cluster.overlap_loss = 0.2;
  for (int i = 0; i < kTrials && !HasFailure(); ++i) {
    const Trial trial = random_trial(first_seed + static_cast<unsigned>(i));
    cluster.devices = trial.ranks;
    const std::vector<RankOutcome> outcomes = record_every_rank(trial);
    const RunResult& first = outcomes.front().result;
    for (const RankOutcome& outcome : outcomes) {
      EXPECT_LE(ops_of_steps(outcome.trace), ops_of_steps(outcomes.front().trace)) << trial.name;
      EXPECT_EQ(outcome.result.wire_bytes_per_step, first.wire_bytes_per_step) << trial.name;
      EXPECT_EQ(outcome.result.peak_device.tag, first.peak_device.tag) << trial.name;
      EXPECT_EQ(outcome.result.peak_host.tag, first.peak_host.tag) << trial.name;
      EXPECT_EQ(outcome.result.peak_nvme.tag, first.peak_nvme.tag) << trial.name;
      EXPECT_EQ(outcome.result.reserved_device, first.reserved_device) << trial.name;
    }
    std::vector<RankTrace> traces;
    for (const RankClass& each : classes_of_trial(trial)) {
      traces.push_back(
          {&outcomes[static_cast<std::size_t>(each.representative())].trace, each.ranks});
    }
    const Timeline together = price(traces, cluster).front();
    const Timeline alone = price(outcomes.front().trace, cluster);
    ASSERT_EQ(together.steps.size(), alone.steps.size());
    for (std::size_t step = 2; step < alone.steps.size(); ++step) {
      EXPECT_EQ(together.steps[step].duration, alone.steps[step].duration) << trial.name;
    }
  }
}

TEST(RankClassesOfAMesh, AreFewHoweverManyRanks) {
  const std::vector<std::int64_t> counts{1000, 7, 64, 64, 5000, 7, 1};
  const std::size_t different = 5;
  for (const int ranks : {1, 2, 3, 5, 8, 64, 999, 1000, 4096}) {
    const std::vector<RankClass> classes = classes_of(Mesh::data_parallel(ranks), {counts});
    EXPECT_LE(classes.size(), 2 * different + 1) << ranks;
    int next = 0, covered = 0;
    for (const RankClass& each : classes) {
      EXPECT_EQ(each.representative(), next);  // classes are ranges of ranks
      next += each.multiplicity();
      covered += each.multiplicity();
    }
    EXPECT_EQ(covered, ranks);
  }
}

TEST(RankClassesOfAMesh, StagesAndShardsCountAndTheOtherAxesDoNot) {
  const Mesh mesh{.tensor = 2, .context = 2, .shard = 4, .replicate = 2, .pipeline = 3};
  // 10 elements over four shards: chunks of 3, 3, 3 and 1; 8: all alike.
  const std::vector<RankClass> classes = classes_of(mesh, {{10}, {8}, {10, 8}});
  ASSERT_EQ(classes.size(), 5u);
  const int stage = 2 * 2 * 4 * 2;
  EXPECT_EQ(classes[0].multiplicity(), stage * 3 / 4);
  EXPECT_EQ(classes[1].multiplicity(), stage / 4);
  EXPECT_EQ(classes[2].multiplicity(), stage);
  EXPECT_EQ(classes[1].representative(), 3 * 2 * 2);  // the fourth shard
  EXPECT_EQ(classes[2].representative(), stage);
  const std::vector<RankClass> stages = stages_of(mesh);
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[1].representative(), stage);
  EXPECT_EQ(stages[1].multiplicity(), stage);
  EXPECT_THROW(classes_of(mesh, {{10}}), Error);
}

}  // namespace
}  // namespace zl::sim
