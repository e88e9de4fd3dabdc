// Marks of processes that came, as those of their node see them.
#include "backends/bootstrap/arrivals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zl {
namespace {

// Of a job that no other process is in.
Launch launch(int rank, int ranks, int local_ranks) {
  return {.rank = rank,
          .ranks = ranks,
          .local_ranks = local_ranks,
          .one_node = ranks == local_ranks,
          .launcher = "Open MPI",
          .job = "test " + std::to_string(getpid())};
}

std::string missing(const Launch& launch, const std::string& point) {
  std::set<int> come;
  look_for_marks(launch, point, come);
  return who_is_missing(launch, come);
}

TEST(Arrivals, NameTheRanksThatHaveNotCome) {
  leave_mark(launch(0, 4, 4), "all here");
  leave_mark(launch(2, 4, 4), "all here");
  leave_mark(launch(2, 4, 4), "all here");  // twice is once
  leave_mark(launch(1, 4, 4), "another point");
  EXPECT_EQ(missing(launch(0, 4, 4), "all here"), "rank 1, 3 has not come");
  leave_mark(launch(1, 4, 4), "all here");
  leave_mark(launch(3, 4, 4), "all here");
  EXPECT_EQ(missing(launch(0, 4, 4), "all here"), "");
}

TEST(Arrivals, SayOfOtherNodesOnlyWhatOneNodeCanSee) {
  leave_mark(launch(1, 4, 2), "two nodes");
  EXPECT_EQ(missing(launch(1, 4, 2), "two nodes"), "of this node's 2 only rank 1 has come");
  leave_mark(launch(3, 4, 2), "two nodes");
  EXPECT_EQ(missing(launch(1, 4, 2), "two nodes"),
            "all of this node's 2 have come, rank 1, 3: one of another node has not");
}

TEST(Arrivals, SayNothingWithoutAJobOrAMark) {
  Launch lonely = launch(0, 2, 2);
  EXPECT_EQ(missing(lonely, "unmarked"), "");
  lonely.job = "";
  leave_mark(lonely, "no job");
  EXPECT_EQ(missing(lonely, "no job"), "");
}

// However it ends.
TEST(Arrivals, AMarkEndsWithItsProcess) {
  const Launch job = launch(0, 2, 2);
  leave_mark(job, "ends");
  Launch other = job;
  other.rank = 1;
  const pid_t child = fork();
  if (child == 0) {
    leave_mark(other, "ends");
    _exit(missing(job, "ends").empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(missing(job, "ends"), "rank 1 has not come");
}

}  // namespace
}  // namespace zl
