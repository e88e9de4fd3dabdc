#include "core/rank/ledger.h"

namespace zl {

void Ledger::add(MemorySpace space, MemoryTag tag, std::int64_t bytes) {
  Account& account = at(space);
  account.current[static_cast<std::size_t>(tag)] += bytes;
  account.total += bytes;
  if (account.total > account.peak) {
    account.peak = account.total;
    account.at_peak = account.current;
  }
}

void Ledger::remove(MemorySpace space, MemoryTag tag, std::int64_t bytes) {
  Account& account = at(space);
  account.current[static_cast<std::size_t>(tag)] -= bytes;
  account.total -= bytes;
}

}  // namespace zl
