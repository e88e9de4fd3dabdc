// The engine on the CUDA backend's host side: offload gives the bits of the CPU's ranks, which are
// those of the run on the device, and the simulator's books; a failed file ends all ranks.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "tests/cuda_fake/fake.h"
#include "tests/engine/comparisons.h"
#include "tests/engine/cuda_runs.h"
#include "tests/storage/faulty_engine.h"
#include "tests/temp_folder.h"

namespace zl::test {
namespace {

constexpr int kRanks = 4;

Finished run_fake(const ModelConfig& model, const Strategy& strategy,
                  const ProgramOptions& options) {
  return run_cuda(kRanks, model, strategy, options, cuda::fake::run_on_host);
}

std::vector<Strategy> delayed_variants(DType dtype) {
  std::vector<Strategy> all;
  for (const bool overlap : {false, true}) {
    Strategy s = strategy(2, dtype);
    s.name = "zero-2 delayed";
    s.zero.overlap_comm = overlap;
    s.offload.optimizer = Tier::cpu;
    s.offload.delayed_update_after = 1;
    s.gradient_accumulation = 2;
    all.push_back(s);
  }
  return all;
}

class CudaOffload : public testing::TestWithParam<int> {};

// One instance per strategy: a hang names it.
std::vector<Strategy> all_variants() {
  std::vector<Strategy> all = offload_variants(DType::bf16);
  for (const Strategy& s : delayed_variants(DType::bf16)) all.push_back(s);
  return all;
}

TEST_P(CudaOffload, HasTheBitsOfCpuRanksAndTheBooksOfTheSimulator) {
  const Strategy s = all_variants()[static_cast<std::size_t>(GetParam())];
  SCOPED_TRACE(s.name);
  const Finished real = run_fake(tiny_gpt2(), s, steps(3));
  expect_same_bits(run_cpu(kRanks, tiny_gpt2(), s, steps(3)), real, s.name);
  expect_twins(real.result, run_twin(kRanks, tiny_gpt2(), s, steps(3)).result, s.name);
}

INSTANTIATE_TEST_SUITE_P(Strategies, CudaOffload,
                         testing::Range(0, static_cast<int>(all_variants().size())));

TEST(CudaOffloadAccumulation, HasTheBitsOfCpuRanks) {
  for (int stage = 1; stage <= 3; ++stage) {
    Strategy s = strategy(stage, DType::f32);
    s.gradient_accumulation = 5;  // more than the two staging buffers
    s.zero.overlap_comm = true;
    s.offload.optimizer = Tier::cpu;
    expect_same_bits(run_cpu(kRanks, tiny_llama(), s, steps(3)),
                     run_fake(tiny_llama(), s, steps(3)), s.name);
  }
}

TEST(CudaOffloadFaults, AFailedRequestEndsAllRanksByName) {
  namespace fs = std::filesystem;
  const test::TempFolder temporary;
  const fs::path& folder = temporary.path();
  Strategy s = strategy(3, DType::bf16);
  s.zero.overlap_comm = true;
  s.offload.optimizer = s.offload.parameters = Tier::nvme;
  s.offload.max_in_cpu = 0;
  s.offload.pipeline_read = s.offload.pipeline_write = true;
  s.offload.sub_group_size = 5000;
  s.offload.nvme_path = folder;
  for (const std::int64_t n : {0, 7, 50, 111}) {
    const auto bad = std::make_shared<IoCount>();
    bad->fails_at = n;
    bad->code = EIO;
    ProgramOptions options = steps(2);
    options.make_storage = [&](const Strategy& each, int rank) {
      const auto count = rank == 2 ? bad : std::make_shared<IoCount>();
      return cpu::make_file_storage(each.offload.nvme_path, rank,
                                    std::make_unique<FaultyEngine>(count),
                                    std::make_unique<FaultyEngine>(std::make_shared<IoCount>()));
    };
    std::string message;
    try {
      run_fake(tiny_llama(), s, options);
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_EQ(message.find(folder.string()), 0u) << n << ": " << message;
    EXPECT_NE(message.find(": cannot read "), std::string::npos) << n << ": " << message;
    EXPECT_TRUE(fs::is_empty(folder)) << n;
  }
}

}  // namespace
}  // namespace zl::test
