// How long OpenMP's threads spin, where the environment says nothing of it.
#include "core/threads/openmp_spin.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace zl {
namespace {

// The two variables as the test wants them; as they were when it ends.
class OpenmpSpin : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kNames) unsetenv(name);
  }
  void TearDown() override {
    for (int i = 0; i < 2; ++i) {
      unsetenv(kNames[i]);
      if (before_[i]) setenv(kNames[i], before_[i]->c_str(), 1);
    }
  }
  static std::optional<std::string> variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }

 private:
  static constexpr const char* kNames[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"};
  const std::optional<std::string> before_[2] = {variable(kNames[0]), variable(kNames[1])};
};

TEST_F(OpenmpSpin, IsLimitedOnce) {
  EXPECT_TRUE(set_openmp_spin());
  EXPECT_EQ(variable("GOMP_SPINCOUNT"), kSpinCount);
  EXPECT_FALSE(set_openmp_spin());
}

TEST_F(OpenmpSpin, IsTheUsersWhereTheUserSaysSo) {
  setenv("OMP_WAIT_POLICY", "active", 1);
  EXPECT_FALSE(set_openmp_spin());
  EXPECT_EQ(variable("GOMP_SPINCOUNT"), std::nullopt);
  unsetenv("OMP_WAIT_POLICY");
  setenv("GOMP_SPINCOUNT", "7", 1);
  EXPECT_FALSE(set_openmp_spin());
  EXPECT_EQ(variable("GOMP_SPINCOUNT"), "7");
}

TEST_F(OpenmpSpin, IsLimitedWhereAVariableIsEmpty) {
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    setenv(name, "", 1);
    EXPECT_TRUE(set_openmp_spin()) << name;
    EXPECT_EQ(variable("GOMP_SPINCOUNT"), kSpinCount) << name;
    unsetenv("GOMP_SPINCOUNT");
    unsetenv("OMP_WAIT_POLICY");
  }
}

}  // namespace
}  // namespace zl
