// What SQLite says, as the errors of a Store. Ownership: values. Threads: any.
#pragma once

#include <SQLiteCpp/Exception.h>

#include <string>
#include <utility>

#include "core/base/error.h"

namespace zl {

Error translated(const SQLite::Exception& error, const std::string& path);

// work(), its SQLite exceptions as Error naming the file.
template <class Work>
auto guarded(const std::string& path, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const SQLite::Exception& error) {
    throw translated(error, path);
  }
}

}  // namespace zl
