// What SQLite says, as the errors of a Store. Ownership: values. Threads: any.
#pragma once

#include <string>
#include <utility>

namespace zl {

// Call it in a catch (...): throws an exception of SQLite as Error{failed} naming the file, any
// other as it is.
[[noreturn]] void rethrow_translated(const std::string& path);

// work(), its SQLite exceptions as Error naming the file.
template <class Work>
auto guarded(const std::string& path, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (...) {
    rethrow_translated(path);
  }
}

}  // namespace zl
