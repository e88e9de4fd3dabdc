#include "results/paths.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <optional>

#include "core/train/run_result.h"
#include "results/environment.h"

namespace zl::test {
namespace {

// Sets variables (nullopt: removes them) for one test and puts the old ones back.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::optional<std::string>>& values) {
    for (const auto& [name, value] : values) {
      const char* old = getenv(name.c_str());
      old_[name] = old ? std::optional<std::string>(old) : std::nullopt;
      set(name, value);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : old_) set(name, value);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  static void set(const std::string& name, const std::optional<std::string>& value) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  std::map<std::string, std::optional<std::string>> old_;
};

TEST(Paths, DefaultsBelowHome) {
  const Variables variables({{"HOME", "/home/ada"},
                             {"XDG_CONFIG_HOME", std::nullopt},
                             {"XDG_DATA_HOME", std::nullopt},
                             {"XDG_CACHE_HOME", ""},
                             {"ZEROLAB_DB", std::nullopt}});
  EXPECT_EQ(config_folder(), "/home/ada/.config/zerolab");
  EXPECT_EQ(data_folder(), "/home/ada/.local/share/zerolab");
  EXPECT_EQ(cache_folder(), "/home/ada/.cache/zerolab");
  EXPECT_EQ(database_path(), "/home/ada/.local/share/zerolab/results.db");
}

TEST(Paths, VariablesWin) {
  const Variables variables({{"HOME", "/home/ada"},
                             {"XDG_CONFIG_HOME", "/c"},
                             {"XDG_DATA_HOME", "/d"},
                             {"XDG_CACHE_HOME", "relative/ignored"},
                             {"ZEROLAB_DB", std::nullopt}});
  EXPECT_EQ(config_folder(), "/c/zerolab");
  EXPECT_EQ(database_path(), "/d/zerolab/results.db");
  EXPECT_EQ(cache_folder(), "/home/ada/.cache/zerolab");
  using Values = std::map<std::string, std::optional<std::string>>;
  const Variables database(Values{{"ZEROLAB_DB", "here.db"}});
  EXPECT_EQ(database_path(), "here.db");
}

TEST(Paths, WithoutHomeTheUserDatabaseAnswers) {
  const Variables variables({{"HOME", std::nullopt}, {"XDG_DATA_HOME", std::nullopt}});
  EXPECT_TRUE(data_folder().is_absolute());
}

TEST(EnvironmentTest, EveryPartIsKnown) {
  const Environment environment = detect_environment();
  EXPECT_FALSE(environment.host.empty());
  EXPECT_FALSE(environment.os.empty());
  EXPECT_FALSE(environment.cpu.empty());
  EXPECT_EQ(environment.kernel.rfind("Linux ", 0), 0u) << environment.kernel;
  EXPECT_GT(environment.cores, 0);
  EXPECT_GT(environment.memory_bytes, 1 << 20);
  EXPECT_FALSE(environment.compiler.empty());
  EXPECT_TRUE(environment.commit == "unknown" ||
              environment.commit.find_first_not_of("0123456789abcdef") == std::string::npos)
      << environment.commit;
}

TEST(RunResultTest, OutcomeNamesAndTotals) {
  EXPECT_STREQ(name_of(Outcome::ok), "ok");
  EXPECT_STREQ(name_of(Outcome::out_of_memory), "out_of_memory");
  EXPECT_STREQ(name_of(Outcome::infeasible), "infeasible");
  EXPECT_STREQ(name_of(Outcome::failed), "failed");
  TaggedBytes bytes;
  bytes.tag = {1, 2, 3, 4, 5, 6, 5'000'000'000};
  EXPECT_EQ(bytes.total(), 5'000'000'021);
}

}  // namespace
}  // namespace zl::test
