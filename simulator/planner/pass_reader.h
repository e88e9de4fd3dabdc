// Which pass each instruction of a rank's list is, in the order of the list.
// Ownership: a value. Threads: none.
#pragma once

#include <optional>
#include <vector>

#include "core/pipeline/schedule.h"
#include "simulator/planner/stage_profile.h"

namespace zl::sim {

class PassReader {
 public:
  PassReader(int chunks, int micro_batches, bool halves)
      : micros_(micro_batches),
        halves_(halves),
        inputs_(static_cast<std::size_t>(chunks), 0),
        ended_(inputs_) {}

  // Of a chunk the last is the one that its rank runs last. Nothing: it is none.
  std::optional<StagePass> next(const Instruction& each);

 private:
  int micros_;
  bool halves_;
  std::vector<int> inputs_, ended_;  // gradients, [chunk]
};

}  // namespace zl::sim
