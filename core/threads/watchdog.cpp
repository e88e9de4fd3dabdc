#include "core/threads/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/threads/stillness.h"

namespace zl {

void end_process(const std::string& why) {
  const std::string line = "zerolab: error: " + visible(why) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  _exit(static_cast<int>(ErrorCode::failed));
}

Watchdog::Watchdog(std::chrono::milliseconds patience, std::function<std::string()> what,
                   std::function<void()> on_look)
    : what_(std::move(what)), on_look_(std::move(on_look)) {
  if (patience.count() <= 0) return;
  thread_ = std::jthread([this, patience](const std::stop_token& stop) { look(stop, patience); });
}

void Watchdog::look(const std::stop_token& stop, std::chrono::milliseconds patience) const {
  const auto pause = std::min<std::chrono::milliseconds>(patience, Stillness::kLook);
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  Stillness still;
  for (std::uint64_t last = 0; !stop.stop_requested();) {
    wake.wait_for(lock, stop, pause, [] { return false; });
    const std::uint64_t now = turns_;
    if (now % 2 == 1 && on_look_) on_look_();
    if (now % 2 == 0 || now != std::exchange(last, now)) {
      still.moved();
    } else if (still.lasts(patience)) {
      break;
    }
  }
  if (!stop.stop_requested()) end_process(what_());
}

}  // namespace zl
