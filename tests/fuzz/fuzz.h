// What the fuzz targets share. A target is a file with a ZL_FUZZ_TARGET: in the build `fuzz` a
// program of libFuzzer, in every other one a function that the regressions in corpus/ are given to.
// Ownership: files() owns a folder until the process ends. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "tests/temp_folder.h"

namespace zl::fuzz {

// Ends the process, so that the input is kept.
inline void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

// Of an operation that failed: by a check of the program, not by the machine.
inline bool is_internal(const std::string& message) { return message.ends_with("]"); }

// Whether the call took its input. Refusing it is right, with a message for people.
template <class Call>
bool takes(Call&& call) {
  try {
    std::forward<Call>(call)();
    return true;
  } catch (const Error& error) {
    const std::string message = error.what();
    require(message.size() < 20'000, "a message of " + std::to_string(message.size()) + " bytes");
    require(error.code() != ErrorCode::failed || !is_internal(message), message);
    return false;
  }
}

class Files {
 public:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return path(name);
  }

 private:
  test::TempFolder folder_;
};

// A folder of this process, which is removed at its end.
inline const Files& files() {
  static const Files folder;
  return folder;
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace zl::fuzz

// ZL_FUZZ_TARGET(name) {...}: takes the input in `data` and `size`, and returns 0.
#ifdef ZL_LIBFUZZER
#define ZL_FUZZ_TARGET(name) \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#else
#define ZL_FUZZ_TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size)
#endif
