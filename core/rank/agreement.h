// Before they train the ranks of a run agree on what it is, over whatever carries their collectives
// and in no book.
// Ownership: nothing. Threads: called on each rank's thread.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "core/device/world.h"

namespace zl {

// Something that must be the same on all ranks.
struct Fact {
  std::string key, value;
};

// What a rank brings along.
struct Statement {
  std::vector<Fact> facts;
  std::exception_ptr failure;  // why it cannot take part at all; null: it can
};

// Returns when all ranks have called it and state the same facts. Throws on every rank: the failure
// of a rank (on the others as RankLeft with its code), else Error{invalid} that names the keys that
// differ, the ranks and their values (as RankLeft on all ranks but the first).
void agree(RankHandle rank, const Statement& statement);

// "run.seed: rank 0 has 1, rank 1, 2 has 2", for the facts of each rank; "" when all are the same.
std::string describe_differences(const std::vector<std::vector<Fact>>& facts);

}  // namespace zl
