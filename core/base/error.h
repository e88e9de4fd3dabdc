// The one exception type of zerolab and the check macro that throws it.
// Ownership: an Error owns its message. Threads: value type, no shared state.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace zl {

// Also the process exit codes of `zerolab` (scenarios/README.md).
enum class ErrorCode {
  failed = 1,         // an operation did not succeed (I/O, environment, programming error)
  usage = 2,          // wrong command line
  invalid = 3,        // invalid scenario, configuration or data file
  infeasible = 4,     // out of memory, deadlocked schedule
  unavailable = 5,    // the backend is not built in or finds no hardware
  regression = 6,     // a comparison failed its threshold
  interrupted = 130,  // Ctrl-C
};

// Thrown at the edges. `message` names the key or file, the value, and the fix.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               std::string_view message);

}  // namespace zl

// Programming errors; throws (a GUI must survive them).
#define ZL_CHECK(condition, message)                                                 \
  do {                                                                               \
    if (!(condition)) ::zl::check_failed(#condition, __FILE__, __LINE__, (message)); \
  } while (false)
