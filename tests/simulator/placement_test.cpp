// Where the ranks of a group sit, and what that makes of its collectives.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "simulator/cost/collective.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::plain_cluster;
using test::TraceBuilder;

// A data-parallel group beside eight tensor-parallel ranks has one rank a node, and seven groups
// like it use the other adapters at once.
TEST(Placement, AGroupOfDistantRanksHasTheAdaptersOfItsOwnRanksOnly) {
  const ClusterSpec cluster = plain_cluster(32);
  TraceBuilder builder;
  TraceEvent& event = builder.collective(kMain, CollectiveKind::all_gather, 8'000'000, 4);
  const auto seconds = [&](int stride) {
    event.stride = stride;
    return collective_seconds(event, cluster);
  };
  EXPECT_DOUBLE_EQ(seconds(1), 3e-6 + 8e6 / 1e9);           // one node
  EXPECT_DOUBLE_EQ(seconds(2), seconds(1));                 // every other device of it
  EXPECT_DOUBLE_EQ(seconds(8), 4e-5 + 8e6 / 0.1e9);         // four nodes, an adapter each
  EXPECT_DOUBLE_EQ(seconds(4), 1e-6 + 2e-5 + 8e6 / 0.2e9);  // two in each of two nodes
}

TEST(Placement, CountsTheMembersOfEveryNode) {
  for (const int node_devices : {1, 2, 7, 8}) {
    for (const int stride : {1, 2, 3, 4, 8, 12, 16}) {
      for (int ranks = 1; ranks <= 40; ++ranks) {
        std::map<int, int> members;
        for (int i = 0; i < ranks; ++i) ++members[i * stride / node_devices];
        int most = 0, fewest = ranks;
        for (const auto& [node, count] : members) {
          most = std::max(most, count);
          fewest = std::min(fewest, count);
        }
        const Placement at = place(ranks, stride, node_devices);
        EXPECT_EQ(at.nodes, static_cast<int>(members.size()));
        EXPECT_EQ(at.per_node, most);
        EXPECT_EQ(at.smallest, fewest);
      }
    }
  }
}

}  // namespace
}  // namespace zl::sim
