// Which ranks of a mesh run the same program, so that one of them can be recorded for all.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/parallel/mesh.h"

namespace zl::sim {

struct RankClass {
  std::vector<int> ranks;  // ascending; the first stands for all

  int representative() const { return ranks.front(); }
  int multiplicity() const { return static_cast<int>(ranks.size()); }
};

// Elements of the parameters of every pipeline stage, in the order of the stages.
using StageCounts = std::vector<std::vector<std::int64_t>>;

// Classes whose ranks record the same events and books: one stage, and as many real elements of
// each parameter's chunk. Chunks are equal but for the padding at a parameter's tail, so a stage
// with d different element counts has at most 2 d + 1 classes, however many ranks. Ordered by
// representative.
std::vector<RankClass> classes_of(const Mesh& mesh, const StageCounts& counts);

// One class per pipeline stage, led by a rank whose chunks hold the most real elements: the others
// of the stage reserve and send the same bytes, and skip at most ops on padding.
std::vector<RankClass> stages_of(const Mesh& mesh);

}  // namespace zl::sim
