#include "scenarios/cli/interrupt.h"

#include <csignal>
#include <string_view>

#include <unistd.h>

#include "core/base/error.h"

namespace zl::cli {
namespace {

std::atomic<bool> g_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

// Only async-signal-safe calls.
void on_signal(int) {
  if (g_stop.exchange(true)) _exit(static_cast<int>(ErrorCode::interrupted));
  constexpr std::string_view kText =
      "\nstopping after this step; interrupt again to quit at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText.data(), kText.size());
}

}  // namespace

const std::atomic<bool>& stop_on_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  const bool ignored = sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
  if (!ignored) sigaction(SIGHUP, &action, nullptr);
  return g_stop;
}

}  // namespace zl::cli
