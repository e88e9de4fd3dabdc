#include "core/threads/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace zl {

void end_process(const std::string& why) {
  const std::string line = "zerolab: error: " + visible(why) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  _exit(static_cast<int>(ErrorCode::failed));
}

std::jthread watch_calls(std::chrono::milliseconds patience,
                         std::function<CallUnderWay()> under_way) {
  if (patience.count() <= 0) return {};
  return std::jthread([patience, under_way = std::move(under_way)](const std::stop_token& stop) {
    const auto pause = std::min<std::chrono::milliseconds>(patience, Stillness::kLook);
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    CallTimer timer(patience);
    while (true) {
      wake.wait_for(lock, stop, pause, [] { return false; });
      if (stop.stop_requested()) return;
      const CallUnderWay call = under_way();
      if (timer.is_overdue(call.number)) end_process(call.what());
    }
  });
}

Watchdog::Watchdog(std::chrono::milliseconds patience, std::function<std::string()> what,
                   std::function<void()> on_look)
    : what_(std::move(what)), thread_(watch_calls(patience, [this, on_look = std::move(on_look)] {
        CallUnderWay call = under_way();
        if (call.number != 0 && on_look) on_look();
        return call;
      })) {}

CallUnderWay Watchdog::under_way() const {
  const std::uint64_t turns = turns_;
  return turns % 2 == 0 ? CallUnderWay() : CallUnderWay{turns, what_};
}

}  // namespace zl
