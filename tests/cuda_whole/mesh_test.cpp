// Tensor groups, pipelines and hybrid sharding on the whole CUDA backend over the fakes: groups
// split off NCCL's and the shared GPU's communicators, messages between stages. The losses of CPU
// ranks, the same bits on one GPU as on one each, the books of the recording device on every rank,
// the bytes of the books.
#include <gtest/gtest.h>

#include "tests/cuda_fake/fake.h"
#include "tests/cuda_fake/nccl_clique.h"
#include "tests/engine/cuda_runs.h"
#include "tests/engine/mesh_runs.h"
#include "tests/engine/traffic.h"

namespace zl::test {
namespace {

constexpr int kMeshRanks = 4;
constexpr std::int64_t kMeshSteps = 2;

// Kernels run in fibers: as little as shows every path.
ModelConfig least_gpt2() { return resized(tiny_gpt2(), {4, 32, 4, 4, 48, 39, 8}); }
ModelConfig least_llama() { return resized(tiny_llama(), {4, 32, 4, 2, 48, 39, 8}); }

Strategy of_mesh(int stage, DType dtype, TensorConfig tensor, PipelineConfig pipeline) {
  Strategy s = strategy(stage, dtype);
  s.micro_batch = 1;
  s.gradient_accumulation = pipeline.ranks > 1 ? 4 : 2;
  s.tensor = tensor;
  s.pipeline = pipeline;
  s.zero.overlap_comm = stage == 3;
  return s;
}

struct MeshCase {
  std::string name;
  ModelConfig model;
  Strategy strategy;
};
void PrintTo(const MeshCase& one, std::ostream* out) { *out << one.name; }

std::vector<MeshCase> cases() {
  using enum PipelineKind;
  std::vector<MeshCase> all{
      {"tensor_2_data_2", least_gpt2(), of_mesh(1, DType::f32, {2}, {})},
      {"tensor_4_sequence", least_llama(), of_mesh(0, DType::bf16, {4, true}, {})},
      {"pipeline_2_data_2", least_gpt2(), of_mesh(3, DType::bf16, {}, {2, 1, one_f_one_b})},
      {"pipeline_4_halves", least_gpt2(), of_mesh(1, DType::f16, {}, {4, 1, zb_h1})},
      {"tensor_2_pipeline_2", least_llama(), of_mesh(2, DType::bf16, {2, true}, {2, 1, zb_h2})},
      {"tensor_2_v", least_llama(), of_mesh(1, DType::f32, {2}, {2, 2, zb_v})},
      {"hsdp_2_2", least_llama(), of_mesh(3, DType::bf16, {}, {})},
      {"hpz_2", least_gpt2(), of_mesh(3, DType::bf16, {}, {})}};
  all[6].strategy.zero.replicas = 2;
  all[7].strategy.zero.secondary_partition = 2;
  return all;
}

MeshRun run_on_gpus(int gpus, const MeshCase& each) {
  const cuda::fake::Gpus machine(gpus);
  return run_ranks(*cuda::make_world({kMeshRanks, 1}, cuda::fake::run_on_host), each.model,
                   each.strategy, steps(kMeshSteps));
}

MeshRun record_gpus(const MeshCase& each) {
  sim::SimOptions twin{.mesh = mesh_of(each.strategy, kMeshRanks), .recorded = {0, 1, 2, 3}};
  twin.device.workspace = cuda::kWorkspace;
  return run_ranks(*sim::make_world({kMeshRanks, 1}, twin), each.model, each.strategy,
                   steps(kMeshSteps));
}

class WholeMesh : public testing::TestWithParam<MeshCase> {};

TEST_P(WholeMesh, HasTheLossesOfCpuRanksAndTheBooksOfTheSimulator) {
  const MeshCase& c = GetParam();
  const MeshRun shared = run_on_gpus(1, c), own = run_on_gpus(kMeshRanks, c), twin = record_gpus(c);
  const MeshRun on_cpu =
      run_ranks(*cpu::make_world({.ranks = kMeshRanks}), c.model, c.strategy, steps(kMeshSteps));
  expect_learned(on_cpu.result().loss, 0.98, c.name);
  const double tolerance = allowed_difference(c.strategy.precision.compute_dtype);
  for (std::size_t i = 0; i < on_cpu.result().loss.size(); ++i) {
    const double loss = on_cpu.result().loss[i];
    EXPECT_NEAR(own.result().loss.at(i), loss, tolerance * loss) << c.name << ", step " << i + 1;
  }
  expect_same_bits(shared, own, c.name);
  for (int rank = 0; rank < kMeshRanks; ++rank) {
    const std::string what = c.name + ", rank " + std::to_string(rank);
    expect_twins(own.ranks[rank], twin.ranks[rank], what);
    expect_twins(shared.ranks[rank], twin.ranks[rank], what + " of one GPU");
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, WholeMesh, testing::ValuesIn(cases()),
                         [](const auto& each) { return each.param.name; });

// Gathers of the final weights are no part of it.
TEST(WholeMeshTraffic, NcclIsGivenTheBytesOfTheBooks) {
  for (const MeshCase& each : cases()) {
    const Mesh mesh = mesh_of(each.strategy, kMeshRanks);
    const cuda::fake::Gpus machine(kMeshRanks);
    const TokenSource data = learnable_tokens(each.model.vocab);
    ProgramOptions options = steps(kMeshSteps);
    options.sequence_length = each.model.max_sequence;
    options.keep_trace = true;
    const std::int64_t before = cuda::fake::exchanged_bytes();
    OwnTraffic all;
    std::mutex mutex;
    cuda::make_world({kMeshRanks, 1}, cuda::fake::run_on_host)->run([&](RankHandle handle) {
      const RankOutcome outcome = run_rank(handle, each.model, each.strategy, data, options);
      const OwnTraffic own = own_traffic(outcome, mesh, handle.communicator.rank());
      const std::lock_guard lock(mutex);
      all.booked.data += own.booked.data;
      all.needed.data += own.needed.data;
      all.needed.control += own.needed.control;
    });
    EXPECT_GT(all.booked.data, 0) << each.name;
    EXPECT_EQ(all.needed.data, all.booked.data) << each.name;
    EXPECT_EQ(cuda::fake::exchanged_bytes() - before, all.booked.data + all.needed.control)
        << each.name;
  }
}

}  // namespace
}  // namespace zl::test
