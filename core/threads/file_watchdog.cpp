#include "core/threads/file_watchdog.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/file_operations.h"
#include "core/threads/stillness.h"
#include "core/threads/watchdog.h"

namespace zl {
namespace {

void watch_files(const std::stop_token& stop, std::chrono::milliseconds patience) {
  const auto pause = std::min<std::chrono::milliseconds>(patience, Stillness::kLook);
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  Stillness still;
  for (std::int64_t last = 0; !stop.stop_requested();) {
    wake.wait_for(lock, stop, pause, [] { return false; });
    const auto oldest = oldest_file_operation();
    const std::int64_t number = oldest ? oldest->number : 0;
    if (number == 0 || number != std::exchange(last, number)) {
      still.moved();
    } else if (still.lasts(patience) && !stop.stop_requested()) {
      end_process(oldest->path + ": \"" + oldest->doing + "\" has not ended for " +
                  std::to_string(patience.count()) +
                  " ms (--collective-timeout): ending this process; look at the disk or the file "
                  "server");
    }
  }
}

}  // namespace

FileWatchdog::FileWatchdog(std::chrono::milliseconds patience) {
  if (patience.count() <= 0) return;
  thread_ = std::jthread([patience](const std::stop_token& stop) { watch_files(stop, patience); });
}

}  // namespace zl
