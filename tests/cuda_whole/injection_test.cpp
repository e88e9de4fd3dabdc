// Any call of CUDA's runtime, cuBLASLt and NCCL may fail: a training then ends, on all ranks, with
// one error that says so, or does not need what failed.
#include <gtest/gtest.h>

#include "tests/cuda_fake/fake.h"
#include "tests/engine/cuda_runs.h"

namespace zl::test {
namespace {

namespace fake = cuda::fake;

ModelConfig one_layer() { return resized(tiny_gpt2(), {1, 16, 1, 1, 16, 16, 4}); }

Strategy with_offload(int stage) {
  Strategy s = strategy(stage, DType::bf16);
  s.zero.overlap_comm = true;
  s.offload.optimizer = Tier::cpu;
  return s;
}

// The error of a run whose n-th call fails; "" where it went well. Fails where the books of the
// fake say that something was left behind.
std::string error_of(int ranks, const Strategy& strategy, const fake::Injection& injection) {
  fake::reset();
  fake::inject(injection);
  std::string message;
  try {
    run_cuda(ranks, one_layer(), strategy, steps(2), fake::run_on_host);
  } catch (const Error& error) {
    message = error.what();
  }
  return message;
}

class Injection : public testing::TestWithParam<int> {};  // GPUs of the machine

TEST_P(Injection, EveryCallMayFail) {
  const fake::Gpus machine(GetParam());
  for (const Strategy& s : {strategy(2, DType::bf16), with_offload(3)}) {
    ASSERT_EQ(error_of(2, s, {}), "");
    const std::int64_t all = fake::calls();
    ASSERT_GT(all, 300);
    int failed = 0, tried = 0;
    for (std::int64_t n = 1; n < all; n += n < 30 ? 1 : all / 25) {
      for (const bool lasting : {false, true}) {
        const std::string message = error_of(2, s, {n, lasting});
        ++tried;
        failed += message.empty() ? 0 : 1;
        if (message.empty()) continue;
        bool is_named = false;
        for (const char* each : {"injected", "the fake runtime's error 999", "unhandled cuda error",
                                 "CUBLAS_STATUS_EXECUTION_FAILED"}) {
          is_named = is_named || message.find(each) != std::string::npos;
        }
        EXPECT_TRUE(is_named) << n << " of " << all << (lasting ? ", lasting: " : ": ") << message;
      }
    }
    EXPECT_GT(failed, tried / 2);
  }
  fake::reset();
}

INSTANTIATE_TEST_SUITE_P(Machines, Injection, testing::Values(1, 2), [](const auto& gpus) {
  return gpus.param == 1 ? "one_gpu" : "a_gpu_each";
});

}  // namespace
}  // namespace zl::test
