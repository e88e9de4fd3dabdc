// Who holds how many bytes: current and peak by space and tag, exact to the requested byte.
// Ownership: a value. Threads: used by one rank's thread.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/memory.h"

namespace zl {

class Ledger {
 public:
  using Tags = std::array<std::int64_t, kMemoryTags>;

  void add(MemorySpace space, MemoryTag tag, std::int64_t bytes);
  void remove(MemorySpace space, MemoryTag tag, std::int64_t bytes);

  std::int64_t total(MemorySpace space) const { return at(space).total; }
  const Tags& current(MemorySpace space) const { return at(space).current; }
  // The breakdown at the (first) moment of the peak of the total.
  const Tags& at_peak(MemorySpace space) const { return at(space).at_peak; }
  std::int64_t peak(MemorySpace space) const { return at(space).peak; }

 private:
  struct Account {
    Tags current{}, at_peak{};
    std::int64_t total = 0, peak = 0;
  };
  Account& at(MemorySpace space) { return accounts_[static_cast<std::size_t>(space)]; }
  const Account& at(MemorySpace space) const { return accounts_[static_cast<std::size_t>(space)]; }

  std::array<Account, kMemorySpaces> accounts_;
};

}  // namespace zl
