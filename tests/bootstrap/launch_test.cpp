// The variables of each launcher as it sets them, and what is wrong with them named.
#include "backends/bootstrap/launch.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/error.h"

namespace zl {
namespace {

using Table = std::map<std::string, std::string>;

VariableLookup of(const Table& table) {
  return [&table](const char* name) -> const char* {
    const auto found = table.find(name);
    return found == table.end() ? nullptr : found->second.c_str();
  };
}

std::optional<Launch> detect(const Table& table) { return detect_launch(of(table)); }

// Of looking for a launch, and for its rendezvous if there is one.
std::string error_of(const Table& table) {
  try {
    const auto launch = detect(table);
    if (launch) rendezvous(*launch, of(table));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "";
}

const Table kTorchrun{{"RANK", "5"},           {"WORLD_SIZE", "8"},
                      {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "4"},
                      {"MASTER_ADDR", "gpu0"}, {"MASTER_PORT", "29400"}};

void expect_launch(const Table& table, const std::string& launcher, int rank, int ranks,
                   int local_rank, const std::string& where) {
  const auto launch = detect(table);
  ASSERT_TRUE(launch.has_value());
  EXPECT_EQ(launch->launcher, launcher);
  EXPECT_EQ(launch->rank, rank);
  EXPECT_EQ(launch->ranks, ranks);
  EXPECT_EQ(launch->local_rank, local_rank);
  EXPECT_EQ(rendezvous(*launch, of(table)), where);
}

Table with(Table table, const std::string& name, const std::string& value) {
  table[name] = value;
  return table;
}

TEST(Launch, TorchrunLeavesItsOwnPortToItsAgents) {
  expect_launch(kTorchrun, "torchrun", 5, 8, 1, "gpu0:29401");
}

TEST(Launch, OpenMpiOnOneNodeMeetsOnIt) {
  expect_launch({{"OMPI_COMM_WORLD_RANK", "3"},
                 {"OMPI_COMM_WORLD_SIZE", "4"},
                 {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
                "Open MPI", 3, 4, 3, "127.0.0.1:29501");
}

// Ranks that talk through MPI need none.
TEST(Launch, OpenMpiOnSeveralNodesNeedsAnAddressForARendezvousOnly) {
  const Table table{{"OMPI_COMM_WORLD_RANK", "3"},
                    {"OMPI_COMM_WORLD_SIZE", "4"},
                    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  const auto launch = detect(table);
  ASSERT_TRUE(launch.has_value());
  EXPECT_FALSE(launch->one_node);
  EXPECT_EQ(launch->local_ranks, 2);
  EXPECT_NE(error_of(table).find("mpirun -x MASTER_ADDR=host"), std::string::npos);
  expect_launch(with(table, "MASTER_ADDR", "gpu0"), "Open MPI", 3, 4, 1, "gpu0:29501");
}

TEST(Launch, MpichsVariables) {
  expect_launch(
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}},
      "MPICH", 1, 2, 1, "127.0.0.1:29501");
}

TEST(Launch, SlurmMeetsOnTheFirstHostOfTheStep) {
  const Table step{{"SLURM_PROCID", "9"},
                   {"SLURM_STEP_NUM_TASKS", "16"},
                   {"SLURM_LOCALID", "1"},
                   {"SLURM_STEP_NUM_NODES", "2"},
                   {"SLURM_STEP_NODELIST", "gpu[03-04]"}};
  expect_launch(step, "Slurm", 9, 16, 1, "gpu03:29501");
  expect_launch(with(step, "SLURM_STEP_NUM_NODES", "1"), "Slurm", 9, 16, 1, "127.0.0.1:29501");
  expect_launch(with(step, "NCCL_COMM_ID", "10.0.0.1:4000"), "Slurm", 9, 16, 1, "10.0.0.1:4000");
}

TEST(Launch, OneProcessIsNoLaunch) {
  EXPECT_FALSE(detect({}).has_value());
  EXPECT_FALSE(detect({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).has_value());
  // The shell of a batch script: allocated tasks, but no step.
  EXPECT_FALSE(detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).has_value());
}

TEST(Launch, WrongVariablesAreNamed) {
  EXPECT_NE(
      error_of(with(kTorchrun, "RANK", "8")).find("RANK: '8' is not an integer between 0 and 7"),
      std::string::npos);
  EXPECT_NE(error_of(with(kTorchrun, "WORLD_SIZE", "many")).find("WORLD_SIZE: 'many'"),
            std::string::npos);
  EXPECT_NE(error_of(with(kTorchrun, "MASTER_PORT", "0")).find("MASTER_PORT: '0'"),
            std::string::npos);
  Table no_local = kTorchrun;
  no_local.erase("LOCAL_RANK");
  EXPECT_NE(error_of(no_local).find("LOCAL_RANK: is not set"), std::string::npos);
}

TEST(Launch, FirstHostOfASlurmList) {
  EXPECT_EQ(first_host("gpu1"), "gpu1");
  EXPECT_EQ(first_host("gpu1,gpu2"), "gpu1");
  EXPECT_EQ(first_host("gpu[007-010,12]"), "gpu007");
  EXPECT_EQ(first_host("a[3,5],b"), "a3");
}

TEST(Launch, CountsTheRanksOfItsNode) {
  EXPECT_EQ(detect(kTorchrun)->local_ranks, 4);
  const Table slurm{{"SLURM_PROCID", "3"},
                    {"SLURM_STEP_NUM_TASKS", "7"},
                    {"SLURM_LOCALID", "0"},
                    {"SLURM_STEP_NUM_NODES", "2"},
                    {"SLURM_STEP_NODELIST", "a"}};
  EXPECT_EQ(detect(slurm)->local_ranks, 4) << "7 on 2 nodes";
  EXPECT_NE(error_of(with(kTorchrun, "LOCAL_WORLD_SIZE", "9")).find("LOCAL_WORLD_SIZE: '9'"),
            std::string::npos);
}

}  // namespace
}  // namespace zl
