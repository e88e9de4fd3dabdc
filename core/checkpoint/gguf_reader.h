// The values of a GGUF file's header, in order.
// Ownership: views the open file, which must live as long. Threads: one per reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/files.h"

namespace zl {

// A list of texts or of numbers; lists of lists are read over and stay empty.
struct GgufList {
  std::vector<std::string> texts;
  std::vector<double> numbers;
};

using GgufValue = std::variant<bool, std::uint64_t, std::int64_t, double, std::string, GgufList>;

// Reads through a window. `what` is what messages call the value that is read. Every count is
// compared with what is left of the file before memory is taken; all throw Error{invalid} naming
// the file when it is not there.
class GgufReader {
 public:
  explicit GgufReader(const InputFile& file) : file_(file) {}

  std::int64_t position() const { return begin_ + static_cast<std::int64_t>(at_); }
  std::uint64_t left() const { return static_cast<std::uint64_t>(file_.size() - position()); }

  // Throws unless `count` things of at least `size` bytes may follow.
  void require(std::uint64_t count, std::uint64_t size, const std::string& what) const;

  template <class T>
  T take(const std::string& what) {
    T value{};
    require(1, sizeof value, what);
    copy(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  std::string take_text(const std::string& what);
  // `type` is the file's number for it.
  GgufValue take_value(std::uint32_t type, const std::string& what, int depth = 0);

  // Throws Error{invalid} "FILE: defect".
  [[noreturn]] void refuse(const std::string& defect) const;

 private:
  GgufList take_list(const std::string& what, int depth);
  void copy(std::span<std::byte> out);

  const InputFile& file_;
  std::int64_t begin_ = 0;  // of the window
  std::vector<std::byte> window_;
  std::size_t at_ = 0;
};

}  // namespace zl
