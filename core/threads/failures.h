// What the ranks of one World::run threw: the first cause is what its caller hears of.
// Ownership: keeps the exceptions. Threads: add from any thread, rethrow when all ranks have ended.
#pragma once

#include <exception>
#include <mutex>
#include <string>

#include "core/base/error.h"

namespace zl {

// Another rank has left: a consequence, not the first cause.
class RankLeft : public Error {
 public:
  explicit RankLeft(const std::string& message, ErrorCode code = ErrorCode::failed)
      : Error(code, message) {}
};

// The time is up for ranks that did not come, or for their bytes.
class TimedOut : public Error {
 public:
  explicit TimedOut(const std::string& message) : Error(ErrorCode::failed, message) {}
};

class Failures {
 public:
  void add(const std::exception_ptr& error);
  bool any() const;
  // The first cause, else the first consequence; returns when nothing failed.
  void rethrow() const;

 private:
  mutable std::mutex mutex_;
  std::exception_ptr cause_, consequence_;
};

// What an exception says: its what(), or that it is not a std::exception.
std::string message_of(const std::exception_ptr& error);

}  // namespace zl
