// A pipeline's recording holds what its ranks do over and over once: books and prices are those of
// the recording that holds all.
#include "core/pipeline/pipeline_rounds.h"
#include "simulator/timeline.h"
#include "tests/engine/pipelines.h"
#include "tests/simulator/trace_builder.h"

namespace zl::test {
namespace {

constexpr int kKept = 8;

struct Twins {
  MeshRun all, folded;
};

Twins record_both(int ranks, const ModelConfig& model, const Strategy& s, std::int64_t count = 2) {
  std::vector<int> every(ranks);
  std::iota(every.begin(), every.end(), 0);
  const auto record = [&](bool folds) {
    ProgramOptions options = steps(count);
    const auto plan = plan_pipeline(s.pipeline, s.gradient_accumulation);
    options.pipeline =
        folds ? std::make_shared<PipelinePlan>(fold(*plan, kKept, s.offload.activations)) : plan;
    options.make_storage = [](const Strategy&, int) { return std::make_unique<sim::Storage>(); };
    const auto world =
        sim::make_world({.ranks = ranks}, {.mesh = mesh_of(s, ranks), .recorded = every});
    return run_ranks(*world, model, s, options);
  };
  return {record(false), record(true)};
}

std::vector<sim::Timeline> price_all(const MeshRun& run, const sim::ClusterSpec& cluster) {
  std::vector<sim::RankTrace> traces;
  for (int rank = 0; rank < static_cast<int>(run.traces.size()); ++rank) {
    traces.push_back({&run.traces[rank], {rank}});
  }
  return sim::price(traces, cluster);
}

void expect_equal_steps(const sim::Timeline& a, const sim::Timeline& b, const std::string& what) {
  EXPECT_EQ(a.total, b.total) << what;
  ASSERT_EQ(a.steps.size(), b.steps.size()) << what;
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    sim::test::expect_same_price(a.steps[i], b.steps[i], what);
  }
}

void expect_alike(int ranks, const Strategy& s, const sim::ClusterSpec& cluster,
                  const ModelConfig& model = four_layers(tiny_gpt2())) {
  const Twins runs = record_both(ranks, model, s);
  const auto all = price_all(runs.all, cluster), folded = price_all(runs.folded, cluster);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string what =
        s.name + " " + name_of(s.pipeline.schedule) + " rank " + std::to_string(rank);
    EXPECT_LT(runs.folded.traces[rank].events().size(), runs.all.traces[rank].events().size())
        << what;
    expect_twins(runs.all.ranks[rank], runs.folded.ranks[rank], what);
    expect_equal_steps(all[rank], folded[rank], what);
  }
}

sim::ClusterSpec slow_links(int ranks) {
  sim::ClusterSpec cluster = sim::test::plain_cluster(ranks);
  cluster.spread.fill(0.1);
  cluster.device.launch_seconds = 2e-6;
  return cluster;
}

TEST(PipelineRounds, AreRecordedOnceAndPricedLikeAll) {
  for (const Schedules& each : kSchedules) {
    if (each.kind == PipelineKind::gpipe || each.kind == PipelineKind::zb_v ||
        each.kind == PipelineKind::dualpipe_v) {
      continue;
    }
    expect_alike(each.ranks,
                 piped(accumulated(1, DType::bf16, 96), each.kind, each.ranks, each.chunks),
                 slow_links(each.ranks));
  }
}

// Whatever holds the ranks up: links that fall behind, a host that issues late, both.
TEST(PipelineRounds, OnSlowLinksAndSlowHosts) {
  for (const double bandwidth : {1e6, 1e10}) {
    for (const double launch : {0.0, 1e-4}) {
      for (const PipelineKind kind : {PipelineKind::one_f_one_b, PipelineKind::zb_h1}) {
        sim::ClusterSpec cluster = slow_links(6);
        cluster.intra.bandwidth = bandwidth;
        cluster.device.launch_seconds = launch;
        expect_alike(6, piped(accumulated(2, DType::f32, 60), kind, 3), cluster);
      }
    }
  }
}

TEST(PipelineRounds, MoreMicroBatchesAreNotMoreEvents) {
  const auto recorded = [](std::int64_t micro_batches) {
    return record_both(
               2, four_layers(tiny_gpt2()),
               piped(accumulated(1, DType::bf16, micro_batches), PipelineKind::one_f_one_b, 2))
        .folded;
  };
  const MeshRun few = recorded(40), more = recorded(41), many = recorded(400);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(few.traces[rank].events().size(), many.traces[rank].events().size());
    EXPECT_EQ(few.ranks[rank].peak_device, many.ranks[rank].peak_device);
    const std::int64_t each = more.ranks[rank].op_count - few.ranks[rank].op_count;
    ASSERT_GT(each, 0);
    EXPECT_EQ(many.ranks[rank].op_count, few.ranks[rank].op_count + 360 * each);
  }
}

TEST(PipelineRounds, OfEveryStageRecomputationAndOffload) {
  for (const int stage : {0, 2, 3}) {
    Strategy s = accumulated(stage, DType::bf16, 64);
    s.recompute.mode = stage == 2 ? RecomputeMode::full : RecomputeMode::none;
    expect_alike(4, piped(s, PipelineKind::one_f_one_b, 2), slow_links(4));
  }
  Strategy s = accumulated(1, DType::bf16, 64);
  s.recompute.mode = RecomputeMode::full;
  s.offload.activations = true;
  expect_alike(2, piped(s, PipelineKind::one_f_one_b, 2), slow_links(2));
}

TEST(SteadyPart, HasTheRoundsOfTheSchedule) {
  const PipelineConfig config{.ranks = 4, .schedule = PipelineKind::one_f_one_b};
  const auto plan = plan_pipeline(config, 40);
  for (int rank = 0; rank < 4; ++rank) {
    const SteadyPart part = plan->schedules[rank].steady;
    EXPECT_EQ(part.step, 1) << rank;
    EXPECT_GE(part.rounds, 34u) << rank;
    EXPECT_LE(part.rounds, 40u - (3u - static_cast<unsigned>(rank))) << rank;
  }
  // All forwards, then all backwards: nothing comes back to where it was.
  const auto gpipe = plan_pipeline({.ranks = 4, .schedule = PipelineKind::gpipe}, 40);
  for (const Schedule& each : gpipe->schedules) EXPECT_EQ(each.steady, SteadyPart{});
}

TEST(SteadyPart, FoldedIsTheScheduleWithoutSomeOfItsRounds) {
  const PipelineConfig config{.ranks = 4, .schedule = PipelineKind::one_f_one_b};
  const auto all = plan_pipeline(config, 60);
  const PipelinePlan folded = fold(*all, kKept, false);
  for (int rank = 0; rank < 4; ++rank) {
    const SteadyPart& part = folded.schedules[rank].steady;
    ASSERT_GT(part.left_out, 40) << rank;
    std::vector<Instruction> body = folded.schedules[rank].body;
    EXPECT_EQ(body.front(), all->schedules[rank].body.front()) << rank;
    EXPECT_EQ(body.back(), all->schedules[rank].body.back()) << rank;
    // Numbered on, it is the schedule of fewer micro-batches.
    for (std::size_t i = part.first + (part.rounds - 1) * part.length; i < body.size(); ++i) {
      body[i].micro -= part.left_out;
    }
    EXPECT_EQ(body, plan_pipeline(config, 60 - part.left_out)->schedules[rank].body) << rank;
  }
}

}  // namespace
}  // namespace zl::test
