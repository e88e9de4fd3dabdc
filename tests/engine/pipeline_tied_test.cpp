// Tied embeddings under pipelines: first and last stage have a copy of the weight each, and with
// the gradient kept apart without a pipeline too, the bits are the same.
#include "tests/engine/pipelines.h"

namespace zl::test {
namespace {

ModelConfig tied_model() {
  ModelConfig model = four_layers(tiny_gpt2());
  model.tied_embeddings = true;
  return model;
}

Strategy apart(Strategy s) {
  s.separate_tied_gradient = true;
  return s;
}

void expect_copies_agree(const MeshRun& run, const std::string& what) {
  ASSERT_TRUE(run.weights.contains("head.tied")) << what;
  EXPECT_TRUE(run.weights.at("head.tied") == run.weights.at("embedding.token")) << what;
}

TEST(TiedEmbedding, KeptApartHasTheBitsOfEveryPipeline) {
  const ModelConfig model = tied_model();
  for (const int stage : {0, 1, 2, 3}) {
    const Strategy plain = apart(accumulated(stage, DType::bf16, 6));
    for (const int data : {1, 2}) {
      const MeshRun reference = run_mesh(data, model, plain);
      if (stage == 0) expect_learned(reference.result().loss, 0.98);
      expect_copies_agree(reference, "no pipeline");
      for (const Schedules& each : kSchedules) {
        if (data * each.ranks > 4 || (data == 2 && stage % 2 == 0)) continue;
        const std::string what =
            std::string(name_of(each.kind)) + ", stage " + std::to_string(stage);
        const MeshRun run =
            run_mesh(data * each.ranks, model, piped(plain, each.kind, each.ranks, each.chunks));
        expect_same_bits(reference, run, what);
        expect_copies_agree(run, what);
      }
    }
  }
}

// Where the clipping binds, a copy that was counted twice in the norm would show.
TEST(TiedEmbedding, IsUpdatedOnTheHostWithTheSameBits) {
  const ModelConfig model = tied_model();
  for (const int stage : {1, 2, 3}) {
    for (const double ratio : {1.0, 0.5}) {
      Strategy plain = apart(accumulated(stage, DType::bf16, 4));
      plain.gradient_clipping = 0.1;
      const MeshRun device = run_mesh(2, model, plain);
      EXPECT_GT(device.result().grad_norm.front(), 0.2) << "the clipping does not bind";
      plain.offload.optimizer = Tier::cpu;
      plain.offload.ratio = ratio;
      plain.offload.sub_group_size = 5000;
      const std::string what = "stage " + std::to_string(stage) + " " + std::to_string(ratio);
      expect_same_bits(device, run_mesh(2, model, plain), what);
      using enum PipelineKind;
      expect_same_bits(device, run_mesh(4, model, piped(plain, one_f_one_b, 2)), what);
      expect_same_bits(device, run_mesh(4, model, piped(plain, zb_v, 2, 2)), what);
    }
  }
}

// After the freeze the ranks have their own gradients, whole.
TEST(TiedEmbedding, OfAOneBitOptimizerHasTheSameBits) {
  const ModelConfig model = tied_model();
  for (const int stage : {0, 1}) {
    Strategy plain = apart(accumulated(stage, DType::f32, 4));
    plain.optimizer.kind = OptimizerKind::onebit_adam;
    plain.optimizer.onebit.freeze_step = 2;
    const MeshRun reference = run_mesh(2, model, plain, 6);
    for (const auto& [kind, chunks] :
         {std::pair{PipelineKind::one_f_one_b, 1}, {PipelineKind::zb_v, 2}}) {
      const MeshRun run = run_mesh(4, model, piped(plain, kind, 2, chunks), 6);
      expect_same_bits(reference, run, std::string(name_of(kind)) + std::to_string(stage));
      expect_copies_agree(run, name_of(kind));
    }
  }
}

TEST(TiedEmbedding, IsRecordedAsItIsExecuted) {
  for (const bool offloads : {false, true}) {
    for (const Schedules& each : kSchedules) {
      Strategy s = piped(accumulated(1, DType::bf16, 6), each.kind, each.ranks, each.chunks);
      if (offloads) s.offload.optimizer = Tier::cpu;
      expect_recorded_as_executed(each.ranks, tied_model(), s);
    }
  }
  expect_recorded_as_executed(2, tied_model(), apart(accumulated(2, DType::bf16, 2)));
}

}  // namespace
}  // namespace zl::test
