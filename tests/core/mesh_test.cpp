// The grid of ranks: Megatron-LM's numbering, held against the groups that its own RankGenerator
// makes for 16 ranks (Megatron-LM d98e8a6; tp 2, cp 2, dp 2, pp 2).
#include "core/parallel/mesh.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace zl {
namespace {

using GroupList = std::vector<std::vector<int>>;

GroupList groups_of(const Mesh& mesh, Axis axis) {
  GroupList groups;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    if (mesh.coordinate(rank, axis) == 0) groups.push_back(mesh.members(rank, axis));
  }
  return groups;
}

TEST(Mesh, HasTheGroupsOfMegatron) {
  const Mesh mesh{.tensor = 2, .context = 2, .shard = 2, .pipeline = 2};
  EXPECT_EQ(groups_of(mesh, Axis::tensor),
            (GroupList{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(groups_of(mesh, Axis::context),
            (GroupList{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  const GroupList data{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}};
  EXPECT_EQ(groups_of(mesh, Axis::data), data);
  EXPECT_EQ(groups_of(mesh, Axis::shard), data);
  EXPECT_EQ(groups_of(mesh, Axis::pipeline),
            (GroupList{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}));
  EXPECT_EQ(groups_of(mesh, Axis::world).size(), 1u);
}

TEST(Mesh, DataIsShardWithinReplicate) {
  const Mesh mesh{.tensor = 2, .shard = 2, .replicate = 3};
  EXPECT_EQ(mesh.members(1, Axis::shard), (std::vector<int>{1, 3}));
  EXPECT_EQ(mesh.members(1, Axis::replicate), (std::vector<int>{1, 5, 9}));
  EXPECT_EQ(mesh.members(9, Axis::data), (std::vector<int>{1, 3, 5, 7, 9, 11}));
}

// Inside data parallelism; consecutive ranks of the world would be a tensor group's.
TEST(Mesh, SecondaryIsNeighboursOfAShardGroup) {
  const Mesh mesh{.tensor = 2, .shard = 4, .pipeline = 2, .secondary = 2};
  EXPECT_EQ(mesh.ranks(), 16);
  EXPECT_EQ(groups_of(mesh, Axis::secondary),
            (GroupList{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(mesh.members(6, Axis::data), (std::vector<int>{0, 2, 4, 6}));
  EXPECT_EQ(mesh.sharding(), Axis::data);
  EXPECT_THROW((Mesh{.shard = 4, .secondary = 3}.check(4)), Error);
}

TEST(Mesh, CoordinatesNameEveryRankOnce) {
  const Mesh mesh{.tensor = 3, .context = 2, .shard = 2, .replicate = 2, .pipeline = 5};
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    int again = 0;
    for (const Axis axis :
         {Axis::tensor, Axis::context, Axis::shard, Axis::replicate, Axis::pipeline}) {
      EXPECT_EQ(mesh.members(rank, axis)[static_cast<std::size_t>(mesh.coordinate(rank, axis))],
                rank);
      again += mesh.coordinate(rank, axis) * mesh.stride(axis);
    }
    EXPECT_EQ(again, rank);
  }
}

TEST(Mesh, RefusesWhatDoesNotMakeTheRanks) {
  const auto message_of = [](const Mesh& mesh, int ranks) -> std::string {
    try {
      mesh.check(ranks);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(message_of({.tensor = 2, .shard = 4}, 8), "");
  EXPECT_NE(message_of({.tensor = 2, .shard = 4}, 12).find("makes 8 ranks, not 12"),
            std::string::npos);
  EXPECT_NE(message_of({.tensor = 0}, 0).find("at least 1"), std::string::npos);
}

}  // namespace
}  // namespace zl
