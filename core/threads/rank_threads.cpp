#include "core/threads/rank_threads.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/log.h"

namespace zl {
namespace {

void warn(const std::vector<bool>& ended, std::chrono::milliseconds patience) {
  std::string ranks;
  for (std::size_t rank = 0; rank < ended.size(); ++rank) {
    if (!ended[rank]) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  const bool one = std::count(ended.begin(), ended.end(), false) == 1;
  log_warning("another rank has failed, and " +
              (one ? "rank " + ranks + " has" : "ranks " + ranks + " have") + " not ended for " +
              std::to_string(patience.count()) + " ms since; waiting for what " +
              (one ? "it does" : "they do"));
}

}  // namespace

void run_on_threads(int ranks, const Failures& failures, std::chrono::milliseconds patience,
                    const std::function<void(int rank)>& work) {
  std::mutex mutex;  // guards `ended`
  std::condition_variable changed;
  std::vector<bool> ended(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      work(rank);
      const std::lock_guard lock(mutex);
      ended[static_cast<std::size_t>(rank)] = true;
      changed.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  const auto all = [&] { return std::count(ended.begin(), ended.end(), false) == 0; };
  while (!all()) {
    const bool silent = changed.wait_for(lock, patience) == std::cv_status::timeout;
    if (!silent || !failures.any()) continue;
    warn(ended, patience);
    changed.wait(lock, all);
  }
}

}  // namespace zl
