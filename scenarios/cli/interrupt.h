// Ctrl-C, SIGTERM and, unless it is ignored (nohup), SIGHUP: the first asks the run to stop after
// its step, the second ends the program. Threads: the flag may be read by any.
#pragma once

#include <atomic>

namespace zl::cli {

// Installs the handlers; the flag turns true at the first signal.
const std::atomic<bool>& stop_on_interrupt();

}  // namespace zl::cli
