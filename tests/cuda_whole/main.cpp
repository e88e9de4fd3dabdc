// Before and after every test the fake GPUs have not failed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cuda_fake/fake.h"

namespace zl::cuda::fake {
namespace {

class Resets : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { reset(); }
};

}  // namespace
}  // namespace zl::cuda::fake

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("ZL_TEST_ROUNDS", "1", 0);  // fibers are slow; tests/cuda_host does more
  testing::UnitTest::GetInstance()->listeners().Append(new zl::cuda::fake::Resets);
  return RUN_ALL_TESTS();
}
