// Memory and values for the parts of an object, and a folder for its file.
// Ownership: each owns what it names. Threads: one.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/storage.h"
#include "tests/temp_folder.h"

namespace zl::test {

inline std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Memory for the parts of an object, as the interface asks for it.
class Parts {
 public:
  Parts(const std::vector<std::int64_t>& sizes, unsigned seed) {
    for (const std::int64_t bytes : sizes) {
      const std::int64_t padded = (bytes + 4095) / 4096 * 4096;
      memory_.emplace_back(
          static_cast<std::byte*>(std::aligned_alloc(4096, static_cast<std::size_t>(padded))),
          &std::free);
      const auto values = random_bytes(static_cast<std::size_t>(bytes), seed++);
      std::memcpy(memory_.back().get(), values.data(), values.size());
      parts_.push_back({memory_.back().get(), bytes});
    }
  }
  std::span<const ObjectPart> span() const { return parts_; }
  friend bool operator==(const Parts& a, const Parts& b) {
    bool same = a.parts_.size() == b.parts_.size();
    for (std::size_t i = 0; same && i < a.parts_.size(); ++i) {
      same = a.parts_[i].bytes == b.parts_[i].bytes &&
             std::memcmp(a.parts_[i].data, b.parts_[i].data,
                         static_cast<std::size_t>(a.parts_[i].bytes)) == 0;
    }
    return same;
  }

 private:
  std::vector<std::unique_ptr<std::byte, void (*)(void*)>> memory_;
  std::vector<ObjectPart> parts_;
};

inline std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class Folder : public testing::Test {
 protected:
  TempFolder temporary;
  const std::string path = temporary.string();
};

}  // namespace zl::test
