#include "core/threads/file_watchdog.h"

#include <string>

#include "core/base/file_operations.h"
#include "core/threads/watchdog.h"

namespace zl {
namespace {

CallUnderWay oldest_call(std::chrono::milliseconds patience) {
  const auto oldest = oldest_file_operation();
  if (!oldest) return {};
  const auto what = [operation = *oldest, patience] {
    return operation.path + ": \"" + operation.doing + "\" has not ended for " +
           std::to_string(patience.count()) +
           " ms (--collective-timeout): ending this process; look at the disk or the file server";
  };
  return {static_cast<std::uint64_t>(oldest->number), what};
}

}  // namespace

FileWatchdog::FileWatchdog(std::chrono::milliseconds patience)
    : thread_(watch_calls(patience, [patience] { return oldest_call(patience); })) {}

}  // namespace zl
