// The picture of a pipeline: what its stages work on is its schedule's list, and no box begins
// before what it waits for has arrived.
#include "scenarios/run/stage_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "core/pipeline/pipeline.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/replay.h"
#include "scenarios/run/simulate.h"
#include "simulator/pipeline_work.h"

namespace zl {
namespace {

constexpr int kRanks = 4, kMicroBatches = 6, kMany = 64;  // of many, most are recorded once

Scenario on_four_gpus(int micro_batches) {
  ScenarioOverrides overrides;
  overrides.cluster = "4xh100";
  overrides.sequence_length = 256;
  overrides.gradient_accumulation = micro_batches;
  return load_scenario("gpt2-124m", overrides);
}

struct Priced {
  Pipeline pipeline;
  Recording recording;
  RunResult result;
  std::vector<sim::Timeline> timelines;
};

Priced priced(PipelineKind kind, int chunks, int micro_batches = kMicroBatches) {
  const Scenario scenario = on_four_gpus(micro_batches);
  Strategy strategy = scenario.strategies[1].strategy;
  strategy.pipeline = {.ranks = kRanks, .virtual_stages = chunks, .schedule = kind};
  const sim::ClusterSpec cluster = scenario_cluster(scenario);
  Priced out;
  out.pipeline =
      make_pipeline(kind, {.ranks = kRanks, .micro_batches = micro_batches, .chunks = chunks});
  out.recording =
      record_run(scenario, strategy, sim::device_properties(cluster), program_options(scenario));
  out.result = price_run(scenario, out.recording, cluster, &out.timelines);
  return out;
}

Phase phase_of(WorkKind kind) {
  if (kind == WorkKind::forward) return Phase::forward;
  return kind == WorkKind::weight_gradient ? Phase::weight_gradient : Phase::backward;
}

using Step = std::tuple<Phase, int, int>;  // kind, micro-batch, chunk

std::vector<Step> scheduled(const Pipeline& pipeline, int rank) {
  std::vector<Step> steps;
  for (const Work& work : pipeline.work[static_cast<std::size_t>(rank)]) {
    steps.emplace_back(phase_of(work.kind), work.micro, pipeline.chunk_of(work.stage));
  }
  return steps;
}

std::vector<sim::WorkSpan> last_step(const StageRun& run) {
  std::vector<sim::WorkSpan> spans = sim::work_spans(run.recording->trace, run.timeline->events);
  std::erase_if(spans, [last = spans.back().step](const sim::WorkSpan& span) {
    return span.step != last || span.micro < 0;
  });
  return spans;
}

// What is held once in the recording is so in the picture, and says how often it came.
TEST(TimedTraces, KeepTheRoundsThatWereRecordedOnce) {
  const Priced run = priced(PipelineKind::one_f_one_b, 1, kMany);
  const std::vector<StageRun> stages = stage_runs(run.recording, run.timelines);
  const std::vector<TimedTrace> timed = timed_traces(run.recording, run.timelines, "timed");
  ASSERT_EQ(timed.size(), stages.size());
  for (std::size_t i = 0; i < timed.size(); ++i) {
    const Trace& recorded = stages[i].recording->trace;
    EXPECT_EQ(timed[i].trace.op_count(), recorded.op_count());
    EXPECT_EQ(timed[i].trace.sequence_hash(), recorded.sequence_hash());
    EXPECT_GT(recorded.op_count(), static_cast<std::int64_t>(recorded.events().size()));
  }
}

TEST(TimedTraces, SayWhatEachStageSendsTheOthers) {
  const Priced run = priced(PipelineKind::one_f_one_b, 1);
  const std::vector<TimedTrace> timed = timed_traces(run.recording, run.timelines, "timed");
  std::size_t sent = 0;
  for (std::size_t from = 0; from < timed.size(); ++from) {
    for (const SentMessage& message : timed[from].sent) {
      const std::size_t to = from + static_cast<std::size_t>(message.to);
      const TraceEvent& send = timed[from].trace.events()[std::size_t(message.sent)];
      const TraceEvent& receive = timed[to].trace.events()[std::size_t(message.received)];
      EXPECT_EQ(send.type, EventType::message);
      EXPECT_EQ(receive.type, EventType::message);
      EXPECT_EQ(send.scope.micro, receive.scope.micro);
      EXPECT_LE(send.timing.start_ns, receive.timing.end_ns);
      ++sent;
    }
  }
  EXPECT_EQ(sent, sim::passages(rank_traces(run.recording), run.timelines).size());
  EXPECT_GE(sent, std::size_t{2 * (kRanks - 1) * kMicroBatches});
}

class StageRuns : public testing::TestWithParam<std::pair<PipelineKind, int>> {};

TEST_P(StageRuns, WorkIsTheScheduleOneBoxAfterTheOther) {
  const Priced run = priced(GetParam().first, GetParam().second);
  const std::vector<StageRun> stages = stage_runs(run.recording, run.timelines);
  ASSERT_EQ(stages.size(), std::size_t{kRanks});
  for (int rank = 0; rank < kRanks; ++rank) {
    const StageRun& stage = stages[static_cast<std::size_t>(rank)];
    EXPECT_EQ(stage.stage, rank);
    EXPECT_EQ(name_of(stage), "stage " + std::to_string(rank) + ", rank " + std::to_string(rank));
    std::vector<Step> found;
    std::int64_t before = 0;
    for (const sim::WorkSpan& span : last_step(stage)) {
      found.emplace_back(span.kind, span.micro, span.chunk);
      EXPECT_GE(span.time.start, before);
      EXPECT_GT(span.time.end, span.time.start);
      before = span.time.end;
    }
    EXPECT_EQ(found, scheduled(run.pipeline, rank)) << to_text(run.pipeline, rank);
  }
}

TEST_P(StageRuns, MessagesGoFromTheEndOfABoxToTheBeginOfAnother) {
  const Priced run = priced(GetParam().first, GetParam().second);
  const auto traces = rank_traces(run.recording);
  std::size_t passed = 0;
  for (const sim::Passage& passage : sim::passages(traces, run.timelines)) {
    if (passage.micro < 0) continue;  // the gradient of the tied embedding
    EXPECT_NE(passage.from, passage.to);
    EXPECT_LT(passage.time.start, passage.time.end);
    const auto spans = [&](std::size_t trace) {
      return sim::work_spans(*traces[trace].trace, run.timelines[trace].events);
    };
    const auto of_this = [&](const sim::WorkSpan& span) {
      return span.step == passage.step && span.micro == passage.micro;
    };
    const auto made = spans(passage.from), taken = spans(passage.to);
    EXPECT_TRUE(std::ranges::any_of(made, [&](const sim::WorkSpan& span) {
      return of_this(span) && span.time.end <= passage.time.start;
    }));
    EXPECT_TRUE(std::ranges::any_of(taken, [&](const sim::WorkSpan& span) {
      return of_this(span) && span.time.start >= passage.time.end;
    }));
    ++passed;
  }
  EXPECT_GE(passed, std::size_t{2 * (kRanks - 1) * kMicroBatches});
}

TEST(FoldedStageRuns, KeepTheNumbersAndTimesOfWhatTheyShow) {
  const Priced run = priced(PipelineKind::one_f_one_b, 1, kMany);
  const auto traces = rank_traces(run.recording);
  std::size_t passed = 0;
  for (const sim::Passage& passage : sim::passages(traces, run.timelines)) {
    const auto micro = [&](std::size_t trace, std::int32_t event) {
      return traces[trace].trace->events()[static_cast<std::size_t>(event)].scope.micro;
    };
    EXPECT_EQ(micro(passage.from, passage.sent), micro(passage.to, passage.received));
    EXPECT_LT(passage.time.start, passage.time.end);
    ++passed;
  }
  EXPECT_GE(passed, std::size_t{2 * (kRanks - 1) * 8});
  for (const StageRun& stage : stage_runs(run.recording, run.timelines)) {
    const std::vector<Step> all = scheduled(run.pipeline, stage.stage);
    const std::vector<sim::WorkSpan> shown = last_step(stage);
    ASSERT_LT(shown.size(), all.size() / 2);
    auto next = all.begin();
    std::int64_t before = 0;
    for (const sim::WorkSpan& span : shown) {
      next = std::find(next, all.end(), Step{span.kind, span.micro, span.chunk});
      ASSERT_NE(next, all.end()) << span.micro << " is not of the schedule, or not in its order";
      EXPECT_GE(span.time.start, before);
      before = span.time.end;
    }
    EXPECT_EQ(std::get<1>(all.back()), shown.back().micro);
  }
}

TEST_P(StageRuns, TheResultHasEveryStageAndNamesTheHighest) {
  const Priced run = priced(GetParam().first, GetParam().second);
  ASSERT_EQ(run.result.stages.size(), std::size_t{kRanks});
  std::int64_t highest = 0;
  int rank = -1;
  for (const StageResult& stage : run.result.stages) {
    EXPECT_EQ(stage.ranks, 1);
    EXPECT_GT(stage.step_seconds, 0);
    EXPECT_LE(stage.time.bubble, stage.step_seconds);
    if (stage.peak_device.total() <= highest) continue;
    highest = stage.peak_device.total();
    rank = stage.rank;
  }
  EXPECT_EQ(run.result.rank, rank);
  EXPECT_EQ(run.result.peak_device.total(), highest);
  const TimeBreakdown& time = run.result.time;
  EXPECT_LE(time.exposed_pipeline, time.exposed_communication);
  EXPECT_EQ(time.exposed_tensor, 0);
  EXPECT_GT(time.bubble, 0);
}

INSTANTIATE_TEST_SUITE_P(Schedules, StageRuns,
                         testing::Values(std::pair{PipelineKind::gpipe, 1},
                                         std::pair{PipelineKind::one_f_one_b, 1},
                                         std::pair{PipelineKind::zb_h1, 1},
                                         std::pair{PipelineKind::zb_v, 2}));

}  // namespace
}  // namespace zl
