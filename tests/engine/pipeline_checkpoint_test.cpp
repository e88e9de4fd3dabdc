// Checkpoints and evaluation of pipelines: a resumed run has the bits of the uninterrupted one, a
// run over another mesh does not take its state.
#include "core/train/executor.h"
#include "tests/engine/mesh_checkpoints.h"
#include "tests/engine/pipelines.h"

namespace zl::test {
namespace {

TEST(PipelineCheckpoint, ResumesWithTheSameBits) {
  for (const Schedules& each : kSchedules) {
    for (const int stage : {0, 1, 3}) {
      const int data = each.ranks == 2 ? 2 : 1;
      const Strategy s = piped(accumulated(stage, stage == 1 ? DType::f16 : DType::bf16, 6),
                               each.kind, each.ranks, each.chunks);
      expect_resumes(data * each.ranks, four_layers(tiny_llama()), s,
                     std::string(name_of(each.kind)) + ", stage " + std::to_string(stage));
    }
  }
}

TEST(PipelineCheckpoint, OfATiedEmbeddingResumesWithTheSameBits) {
  ModelConfig tied = four_layers(tiny_gpt2());
  tied.tied_embeddings = true;
  for (const bool offloads : {false, true}) {
    Strategy s = accumulated(2, DType::bf16, 4);
    if (offloads) s.offload.optimizer = Tier::cpu;
    expect_resumes(4, tied, piped(s, PipelineKind::one_f_one_b, 2), "loop");
    expect_resumes(4, tied, piped(s, PipelineKind::zb_v, 2, 2), "V");
  }
}

TEST(PipelineCheckpoint, OfAnotherMeshIsRefusedByName) {
  const TempFolder folder(in_memory());
  const std::string run = (folder / "run").string();
  const ModelConfig model = four_layers(tiny_llama());
  const Strategy plain = accumulated(1, DType::f32, 4);
  using enum PipelineKind;
  run_kept(4, model, piped(plain, interleaved, 2, 2), run, kDone);
  const std::vector<std::string> files = names_in(run);
  EXPECT_HAS(mesh_refusal(4, model, plain, run),
             "its pipeline is 2 ranks of 2 stages, of which this run has none");
  EXPECT_HAS(mesh_refusal(4, model, piped(plain, one_f_one_b, 4), run),
             "its pipeline is 2 ranks of 2 stages, not 4 ranks of 1 stages");
  EXPECT_HAS(mesh_refusal(4, model, piped(plain, one_f_one_b, 2), run),
             "its pipeline is 2 ranks of 2 stages, not 2 ranks of 1 stages");
  EXPECT_HAS(mesh_refusal(4, model, piped(plain, zb_v, 2, 2), run),
             "its pipeline is 2 ranks of 2 stages, not 2 ranks of 2 stages on a V");
  EXPECT_EQ(names_in(run), files);
  // The order of the work is no part of the state.
  EXPECT_EQ(mesh_refusal(4, model, piped(plain, interleaved_zb, 2, 2), run), "accepted");
}

// Trains with an evaluation before every step and after the last, or without.
struct Losses {
  std::vector<double> training, evaluation;
};
Losses train(int ranks, const ModelConfig& model, const Strategy& s, bool evaluates) {
  Losses losses;
  const TokenSource data = learnable_tokens(model.vocab);
  cpu::make_world({.ranks = ranks})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator, {.mesh = mesh_of(s, ranks)});
    Engine engine(context, model, s, model.max_sequence, 11);
    const auto evaluate = [&] {
      if (!evaluates) return;
      const Evaluation found = engine.evaluate(data.batch({.step = 100,
                                                           .rank = context.rank(Axis::data),
                                                           .ranks = context.ranks(Axis::data),
                                                           .micro_batch = s.micro_batch,
                                                           .sequence_length = model.max_sequence}));
      if (context.rank() == 0) losses.evaluation.push_back(found.mean());
    };
    for (int step = 0; step < 3; ++step) {
      evaluate();
      const double loss = run_step(engine, data, {.sequence_length = model.max_sequence}).loss;
      if (context.rank() == 0) losses.training.push_back(loss);
    }
    evaluate();
  });
  return losses;
}

TEST(PipelineEvaluation, IsThatWithoutOneAndLeavesNoTrace) {
  const ModelConfig model = with_dropout(four_layers(tiny_gpt2()));
  for (const int stage : {0, 3}) {
    Strategy plain = accumulated(stage, DType::f32, 6);
    plain.zero.overlap_comm = stage == 3;
    const Losses reference = train(2, model, plain, true);
    EXPECT_NE(reference.evaluation.front(), reference.evaluation.back());
    for (const Schedules& each : kSchedules) {
      if (each.ranks != 2) continue;
      const Strategy s = piped(plain, each.kind, each.ranks, each.chunks);
      const Losses found = train(4, model, s, true);
      EXPECT_EQ(found.evaluation, reference.evaluation) << name_of(each.kind);
      EXPECT_EQ(found.training, reference.training) << name_of(each.kind);
      EXPECT_EQ(train(4, model, s, false).training, reference.training) << name_of(each.kind);
    }
  }
}

// What a file of weights holds: each parameter once, in the order of the model, as its stage has
// it.
TEST(PipelineWeights, AreGatheredFromEveryStage) {
  ModelConfig model = four_layers(tiny_gpt2());
  model.tied_embeddings = true;
  for (const Schedules& each : kSchedules) {
    const int ranks = each.ranks * (each.ranks == 2 ? 2 : 1);
    const Strategy s = piped(accumulated(1, DType::bf16, 6), each.kind, each.ranks, each.chunks);
    const TokenSource data = learnable_tokens(model.vocab);
    const MeshRun run = run_mesh(ranks, model, s, 2);
    std::vector<std::string> names;
    ProgramOptions options = steps(2);
    options.sequence_length = model.max_sequence;
    options.at_end = [&](Engine& engine) {
      engine.gather_model([&](const ParameterSpec& spec, const std::vector<float>& values) {
        names.push_back(spec.name);
        EXPECT_TRUE(values == run.weights.at(spec.name)) << name_of(each.kind) << " " << spec.name;
      });
    };
    cpu::make_world({.ranks = ranks})->run([&](RankHandle handle) {
      run_rank(handle, model, s, data, options);
    });
    std::vector<std::string> expected;
    for (const ParameterSpec& spec : ParameterTable(model).specs) expected.push_back(spec.name);
    EXPECT_EQ(names, expected) << name_of(each.kind);
  }
}

}  // namespace
}  // namespace zl::test
