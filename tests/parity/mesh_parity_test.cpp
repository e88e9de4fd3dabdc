// Meshes against PyTorch, which knows nothing of them: tensor 2 x pipeline 2 x data 2 trains as the
// goldens of one process (parity_test.cpp), each row of a batch a micro-batch of a data-parallel
// rank.
#include "tests/parity/training.h"

namespace zl::test {
namespace {

constexpr std::size_t kGoldenSteps = 50;

struct MeshCase {
  int stage = 0;
  PipelineKind schedule = PipelineKind::one_f_one_b;
  bool sequence_parallel = false;
  int replicas = 1;
};

Strategy on_mesh(const MeshCase& mesh) {
  Strategy s = adamw(mesh.stage, kBatch);
  s.gradient_accumulation = 2;
  s.tensor = {.ranks = 2, .sequence_parallel = mesh.sequence_parallel};
  s.pipeline = {.ranks = 2, .schedule = mesh.schedule};
  s.zero.replicas = mesh.replicas;
  return s;
}

class MeshParity : public testing::TestWithParam<std::string> {};

// Tied and not, an odd vocabulary, an odd number of layers, kv heads fewer than heads.
TEST_P(MeshParity, TensorPipelineAndDataFollowPyTorch) {
  const nlohmann::json expected = golden(GetParam())["fp32"];
  ASSERT_EQ(expected["loss"].size(), kGoldenSteps);
  EXPECT_LT(expected["loss"].back().get<double>(), 0.9 * expected["loss"].front().get<double>());
  for (const MeshCase& mesh : {MeshCase{},
                               {1, PipelineKind::zb_h1, true},
                               {2, PipelineKind::gpipe, false, 2},
                               {3, PipelineKind::one_f_one_b, true}}) {
    const Trajectory ours = train(GetParam(), on_mesh(mesh), 8, kGoldenSteps);
    const double loss = largest_relative_error(ours.loss, expected["loss"]);
    const double norm = largest_relative_error(ours.grad_norm, expected["grad_norm"]);
    const std::string what = GetParam() + ", tp2 x pp2 x dp2, " + name_of(mesh.schedule) +
                             ", ZeRO-" + std::to_string(mesh.stage) +
                             (mesh.sequence_parallel ? ", sequence parallel" : "");
    EXPECT_LT(loss, 1e-5) << what;
    EXPECT_LT(norm, 1e-4) << what;
    std::printf("%s: loss within %.1e, gradient norm within %.1e\n", what.c_str(), loss, norm);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, MeshParity, testing::Values("gpt2", "llama", "llama3", "qwen2"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace zl::test
