// The promise of pipelines: losses and final weights of every schedule and number of stages are the
// bits of the run without one.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/engine/comparisons.h"

namespace zl::test {
namespace {

struct Pipelined {
  std::vector<RunResult> ranks;
  std::map<std::string, std::vector<float>> weights;  // by name, from the ranks that have them

  const RunResult& result() const { return ranks.front(); }
};

// Of the ranks that `world` runs; of the CPU's with their final weights.
Pipelined run_ranks(World& world, const ModelConfig& model, const Strategy& strategy,
                    ProgramOptions options) {
  options.sequence_length = model.max_sequence;
  const TokenSource data = learnable_tokens(model.vocab);
  const bool real = world.executed_ranks() == world.ranks();
  Pipelined finished;
  finished.ranks.resize(world.ranks());
  std::mutex mutex;
  world.run([&](RankHandle handle) {
    ProgramOptions mine = options;
    std::map<std::string, std::vector<float>> weights;
    mine.at_end = [&](Engine& engine) {
      for (int p = 0; real && p < static_cast<int>(engine.parameters().specs.size()); ++p) {
        weights[engine.parameters().specs[p].name] = engine.gather_parameter(p);
      }
    };
    RankOutcome outcome = run_rank(handle, model, strategy, data, mine);
    const std::lock_guard lock(mutex);
    finished.ranks[handle.communicator.rank()] = std::move(outcome.result);
    for (auto& [name, values] : weights) {
      const auto [at, fresh] = finished.weights.emplace(name, values);
      EXPECT_TRUE(fresh || at->second == values) << name << ": two ranks differ";
    }
  });
  return finished;
}

Pipelined run_pipeline(int ranks, const ModelConfig& model, const Strategy& strategy,
                       std::int64_t count = 4) {
  return run_ranks(*cpu::make_world({.ranks = ranks}), model, strategy, steps(count));
}

// Every rank, one after the other, on the recording device.
Pipelined record_pipeline(int ranks, const ModelConfig& model, const Strategy& strategy,
                          std::int64_t count = 4) {
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  const auto world = sim::make_world(
      {.ranks = ranks}, {.mesh = mesh_of(strategy, ranks), .recorded = std::move(all)});
  return run_ranks(*world, model, strategy, steps(count));
}

void expect_same_bits(const Pipelined& a, const Pipelined& b, const std::string& what) {
  EXPECT_EQ(a.result().loss, b.result().loss) << what;
  EXPECT_EQ(a.result().grad_norm, b.result().grad_norm) << what;
  EXPECT_TRUE(a.weights == b.weights) << what << ": final weights differ";
}

ModelConfig four_layers(ModelConfig model) {
  model.layers = 4;
  model.tied_embeddings = false;
  model.complete();
  return model;
}

Strategy accumulated(int stage, DType dtype, std::int64_t micro_batches) {
  Strategy s = strategy(stage, dtype);
  s.micro_batch = 1;
  s.optimizer.lr = 4e-3;
  s.gradient_accumulation = micro_batches;
  return s;
}

Strategy piped(Strategy s, PipelineKind kind, int ranks, int chunks = 1) {
  s.pipeline = {.ranks = ranks, .virtual_stages = chunks, .schedule = kind};
  return s;
}

struct Schedules {
  PipelineKind kind;
  int ranks, chunks;
};

const std::vector<Schedules> kSchedules{
    {PipelineKind::gpipe, 2, 1},       {PipelineKind::one_f_one_b, 2, 1},
    {PipelineKind::one_f_one_b, 4, 1}, {PipelineKind::one_f_one_b, 3, 1},
    {PipelineKind::gpipe, 4, 1},       {PipelineKind::interleaved, 2, 2}};

class PipelineEquality : public testing::TestWithParam<TrainingCase> {};

TEST_P(PipelineEquality, EverySchedulesBitsAreThoseWithoutOne) {
  const TrainingCase& c = GetParam();
  const ModelConfig model = four_layers(c.model);
  for (const int stage : {0, 1, 2, 3}) {
    Strategy plain = accumulated(stage, c.dtype, 6);
    plain.zero.overlap_comm = stage == 1 || stage == 3;
    for (const int data : {1, 2}) {
      const Pipelined reference = run_pipeline(data, model, plain);
      if (stage == 0) expect_learned(reference.result().loss, 0.98);
      for (const Schedules& each : kSchedules) {
        if (stage != 1 && data * each.ranks > 4) continue;
        const Pipelined run = run_pipeline(data * each.ranks, model,
                                           piped(plain, each.kind, each.ranks, each.chunks));
        expect_same_bits(reference, run,
                         std::string(name_of(each.kind)) + " of " + std::to_string(each.ranks) +
                             " ranks, stage " + std::to_string(stage) + ", data " +
                             std::to_string(data));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PipelineEquality,
                         testing::Values(TrainingCase{"gpt2_fp32", tiny_gpt2(), DType::f32},
                                         TrainingCase{"llama_bf16", tiny_llama(), DType::bf16},
                                         TrainingCase{"gpt2_fp16", tiny_gpt2(), DType::f16},
                                         TrainingCase{"dropout_bf16", with_dropout(tiny_gpt2()),
                                                      DType::bf16}),
                         [](const auto& each) { return each.param.name; });

// Recomputation, overlap and offload inside a pipeline.
std::vector<Strategy> variants_of(Strategy s) {
  std::vector<Strategy> all;
  s.zero.overlap_comm = true;
  s.recompute.mode = RecomputeMode::full;
  all.push_back(s);
  s.zero.overlap_comm = false;
  s.recompute.mode = RecomputeMode::every_k;
  s.recompute.every = 2;
  all.push_back(s);
  s.offload.activations = true;
  all.push_back(s);
  s = strategy(2, s.precision.compute_dtype);
  s.micro_batch = 1;
  s.gradient_accumulation = all.front().gradient_accumulation;
  s.optimizer.lr = all.front().optimizer.lr;
  s.offload.optimizer = Tier::cpu;
  all.push_back(s);
  return all;
}

TEST(Pipeline, KeepsItsBitsUnderRecomputationOverlapAndOffload) {
  const ModelConfig model = four_layers(tiny_gpt2());
  for (const Strategy& plain : variants_of(accumulated(3, DType::f32, 5))) {
    const Pipelined reference = run_pipeline(2, model, plain);
    expect_learned(reference.result().loss, 0.98);
    expect_same_bits(reference, run_pipeline(4, model, piped(plain, PipelineKind::one_f_one_b, 2)),
                     "recompute " + std::to_string(static_cast<int>(plain.recompute.mode)));
  }
}

// Stages of other sizes, fewer micro-batches than ranks, one of them.
TEST(Pipeline, MayBeUnevenAndHaveFewMicroBatches) {
  const ModelConfig model = four_layers(tiny_llama());
  for (const std::int64_t micros : {1, 2, 3}) {
    const Strategy plain = accumulated(1, DType::f32, micros);
    const Pipelined reference = run_pipeline(1, model, plain, 6);
    expect_learned(reference.result().loss, 0.99);
    Strategy s = piped(plain, PipelineKind::one_f_one_b, 3);
    s.pipeline.layers_per_stage = {1, 2, 1};
    expect_same_bits(reference, run_pipeline(3, model, s, 6), std::to_string(micros));
  }
}

// A tied weight has the sum of two accumulators under a pipeline, one without; breadth-first adds
// micro-batches up the other way round: the same to rounding.
TEST(Pipeline, IsCloseWhereGradientsAddUpInAnotherOrder) {
  ModelConfig tied = four_layers(tiny_gpt2());
  tied.tied_embeddings = true;
  const auto compare = [](const ModelConfig& model, PipelineKind kind, int chunks) {
    for (const int stage : {0, 1, 2, 3}) {
      const Strategy plain = accumulated(stage, DType::f32, 4);
      const Pipelined reference = run_pipeline(2, model, plain, 8);
      const Pipelined run = run_pipeline(4, model, piped(plain, kind, 2, chunks), 8);
      expect_learned(reference.result().loss, 0.9);
      for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_NEAR(run.result().loss[i], reference.result().loss[i],
                    2e-5 * reference.result().loss[i]);
        EXPECT_NEAR(run.result().grad_norm[i], reference.result().grad_norm[i],
                    1e-4 * reference.result().grad_norm[i]);
      }
    }
  };
  compare(tied, PipelineKind::one_f_one_b, 1);
  compare(tied, PipelineKind::interleaved, 2);
  compare(four_layers(tiny_gpt2()), PipelineKind::breadth_first, 2);
}

TEST(Pipeline, IsRecordedAsItIsExecutedOnEveryRank) {
  for (const ModelConfig& model : {tiny_gpt2(), four_layers(tiny_llama())}) {
    for (const Schedules& each : kSchedules) {
      if (each.ranks * each.chunks > model.layers) continue;
      for (const int stage : {0, 1, 2, 3}) {
        const Strategy s =
            piped(accumulated(stage, DType::bf16, 6), each.kind, each.ranks, each.chunks);
        const int ranks = each.ranks * (each.ranks < 4 ? 2 : 1);
        const Pipelined real = run_pipeline(ranks, model, s),
                        twin = record_pipeline(ranks, model, s);
        for (int rank = 0; rank < ranks; ++rank) {
          expect_twins(real.ranks[rank], twin.ranks[rank],
                       std::string(name_of(each.kind)) + " rank " + std::to_string(rank));
        }
      }
    }
  }
}

std::string refusal(int ranks, const ModelConfig& model, const Strategy& s) {
  try {
    run_pipeline(ranks, model, s);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "accepted";
}

TEST(Pipeline, ThatCannotBeIsRefusedWithTheFix) {
  const Strategy plain = accumulated(0, DType::f32, 4);
  using enum PipelineKind;
  EXPECT_NE(refusal(3, tiny_gpt2(), piped(plain, gpipe, 2))
                .find("parallel.pipeline: 2 does not divide 3 ranks; use --ranks 2 or 4, or a "
                      "pipeline that divides them"),
            std::string::npos);
  EXPECT_NE(refusal(4, tiny_gpt2(), piped(plain, gpipe, 4))
                .find("parallel.pipeline: 4 ranks of 1 virtual stages make 4 stages, the model has "
                      "3 layers; use at most 3 stages"),
            std::string::npos);
  EXPECT_NE(refusal(2, tiny_gpt2(), piped(plain, zb_h1, 2)).find("runs backwards in halves"),
            std::string::npos);
  Strategy uneven = piped(plain, gpipe, 2);
  uneven.pipeline.layers_per_stage = {3, 1};
  EXPECT_NE(refusal(2, tiny_gpt2(), uneven)
                .find("parallel.layers_per_stage: 2 stages of 4 layers together; give 2 positive "
                      "numbers that add up to 3"),
            std::string::npos);
}

}  // namespace
}  // namespace zl::test
