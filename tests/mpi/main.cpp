// The tests of MPI's ranks: every process runs all of them, in step, each as one rank.
#include <gtest/gtest.h>

#include "backends/mpi/messages.h"
#include "backends/mpi/world.h"
#include "tests/backends_cpu_world/ranks.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (zl::mpi::processes().rank > 0) {
    delete testing::UnitTest::GetInstance()->listeners().Release(
        testing::UnitTest::GetInstance()->listeners().default_result_printer());
  }
  zl::cpu::test::make_ranks = [](const zl::WorldOptions& options) {
    return zl::mpi::make_world(options);
  };
  return RUN_ALL_TESTS();
}
