// Variables of launchers as a process of theirs finds them, right and wrong.
#include <cstdlib>

#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

// Variables of the environment for the life of this.
class Variables {
 public:
  explicit Variables(std::vector<std::pair<std::string, std::string>> values)
      : values_(std::move(values)) {
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variables() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

using Table = std::vector<std::pair<std::string, std::string>>;

// What is wrong, and the variables.
const std::vector<std::pair<std::string, Table>> kWrong = {
    {"LOCAL_RANK: is not set", {{"RANK", "0"}, {"WORLD_SIZE", "2"}}},
    {"RANK: 'x' is not an integer", {{"RANK", "x"}, {"WORLD_SIZE", "2"}}},
    {"OMPI_COMM_WORLD_SIZE: '1x'", {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1x"}}},
    {"PMI_RANK: '7'", {{"PMI_RANK", "7"}, {"PMI_SIZE", "4"}}},
    {"SLURM_LOCALID: is not set", {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}}}};

TEST(LaunchVariables, ThatAreWrongAreOneErrorWithExitCode2) {
  for (const auto& [part, table] : kWrong) {
    const Home home;
    const Variables variables(table);
    const std::string error = refused(home, {"paths"}, 2);
    EXPECT_CONTAINS(error, part);
    EXPECT_EQ(error.find("zerolab: error: "), error.rfind("zerolab: error: ")) << error;
  }
}

TEST(LaunchVariables, ThatAreWrongDoNotMatterForHelpAndVersion) {
  for (const auto& [part, table] : kWrong) {
    const Home home;
    const Variables variables(table);
    for (const char* option : {"--version", "--help"}) {
      const Output output = zerolab(home, {option});
      EXPECT_EQ(output.code, 0) << part << output.err;
      EXPECT_CONTAINS(output.out, "zerolab");
    }
  }
}

// Two nodes of two ranks: only what meets over NCCL asks where.
TEST(LaunchVariables, OfSeveralNodesNeedNoAddressWithoutNccl) {
  const Home home;
  const Variables variables({{"OMPI_COMM_WORLD_RANK", "0"},
                             {"OMPI_COMM_WORLD_SIZE", "4"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  const Output output = zerolab(home, {"paths"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_NE(output.out, "");
}

TEST(CollectiveTimeout, IsAWholeNumberOfSecondsFromZero) {
  const Home home;
  for (const char* wrong : {"-1", "x", "1.5", "1000001"}) {
    EXPECT_CONTAINS(refused(home, {"run", "tiny-gpt2", "--collective-timeout", wrong}, 2),
                    "--collective-timeout");
  }
  const Output output =
      zerolab(home, {"run", data_file("tiny.json"), "--backend", "cpu", "--strategy", "zero-1",
                     "--steps", "2", "--collective-timeout", "0"});
  EXPECT_EQ(output.code, 0) << output.err;
}

}  // namespace
}  // namespace zl::cli_test
