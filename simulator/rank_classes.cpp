#include "simulator/rank_classes.h"

#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/parallel/partition.h"

namespace zl::sim {
namespace {

using OwnedCounts = std::vector<std::int64_t>;  // of every parameter

OwnedCounts owned_counts(const std::vector<std::int64_t>& counts, int ranks, int rank) {
  const Partition partition(counts, ranks, rank);
  OwnedCounts owned;
  for (int p = 0; p < static_cast<int>(counts.size()); ++p) {
    owned.push_back(partition.owned_count(p));
  }
  return owned;
}

}  // namespace

std::vector<RankClass> classes_of(const Mesh& mesh, const StageCounts& counts) {
  ZL_CHECK(counts.size() == static_cast<std::size_t>(mesh.pipeline),
           "every pipeline stage has parameters");
  std::vector<RankClass> classes;
  std::map<std::pair<int, OwnedCounts>, std::size_t> known;
  std::map<std::pair<int, int>, std::size_t> class_of;  // by stage and place among the shards
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const int stage = mesh.coordinate(rank, Axis::pipeline);
    const int shard = mesh.coordinate(rank, Axis::shard);
    const auto [place, is_new] = class_of.try_emplace({stage, shard}, 0);
    if (is_new) {
      OwnedCounts owned = owned_counts(counts[stage], mesh.shard, shard);
      place->second = known.try_emplace({stage, std::move(owned)}, classes.size()).first->second;
      if (place->second == classes.size()) classes.emplace_back();
    }
    classes[place->second].ranks.push_back(rank);
  }
  return classes;
}

std::vector<RankClass> stages_of(const Mesh& mesh) {
  std::vector<RankClass> stages(mesh.pipeline);
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const int stage = mesh.coordinate(rank, Axis::pipeline);
    stages[stage].ranks.push_back(rank);
  }
  return stages;
}

}  // namespace zl::sim
