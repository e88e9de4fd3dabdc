// The machine and the build a run came from.
// Ownership: a value. Threads: `detect_environment` only reads; safe from any thread.
#pragma once

#include <cstdint>
#include <string>

namespace zl {

struct Environment {
  std::string host;
  std::string os;      // "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;  // "Linux 6.1.0"
  std::string cpu;     // model name
  int cores = 0;       // hardware threads this process may use
  std::int64_t memory_bytes = 0;
  std::string gpu, driver;  // empty: none; filled by the caller that opened the GPU
  std::string compiler;     // "GNU 12.2.0"
  std::string build;        // CMake build type
  std::string commit;       // of the sources; "unknown" outside git and without zl_commit

  bool operator==(const Environment&) const = default;
};

// Everything but `gpu` and `driver`. What cannot be read is "unknown" or 0.
Environment detect_environment();

// What `detect_environment` calls the commit. For the generated source of zl_commit, which names it
// before main.
void set_source_commit(const char* commit);

}  // namespace zl
