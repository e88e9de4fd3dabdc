// How many threads a rank has: as it is told, as OpenMP is told, or its share of the processors.
#include "core/device/world.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace zl {
namespace {

class OpenMpThreads {
 public:
  explicit OpenMpThreads(const char* text) {
    if (const char* given = std::getenv(kName)) before_ = given;
    text == nullptr ? unsetenv(kName) : setenv(kName, text, 1);
  }
  ~OpenMpThreads() { before_ ? setenv(kName, before_->c_str(), 1) : unsetenv(kName); }
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

 private:
  static constexpr const char* kName = "OMP_NUM_THREADS";
  std::optional<std::string> before_;
};

int threads_under(const char* text, const WorldOptions& options = {}) {
  const OpenMpThreads environment(text);
  return threads_per_rank(options, 1);
}

TEST(ThreadsPerRank, AreWhatTheOptionsThenTheEnvironmentSay) {
  const int share = threads_under(nullptr);
  EXPECT_GE(share, 1);
  const std::string more = std::to_string(share + 1);
  EXPECT_EQ(threads_under(more.c_str()), share + 1);
  EXPECT_EQ(threads_under((more + ",2").c_str()), share + 1) << "nested";
  EXPECT_EQ(threads_under("1", {.threads_per_rank = 3}), 3);
  for (const char* text : {"", "0", "-2", "many", "99999999999"}) {
    EXPECT_EQ(threads_under(text), share) << text;
  }
}

}  // namespace
}  // namespace zl
