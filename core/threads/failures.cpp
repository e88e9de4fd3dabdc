#include "core/threads/failures.h"

namespace zl {

void Failures::add(const std::exception_ptr& error) {
  std::lock_guard lock(mutex_);
  try {
    std::rethrow_exception(error);
  } catch (const RankLeft&) {
    if (!consequence_) consequence_ = error;
  } catch (...) {
    if (!cause_) cause_ = error;
  }
}

bool Failures::any() const {
  std::lock_guard lock(mutex_);
  return cause_ || consequence_;
}

void Failures::rethrow() const {
  if (cause_) std::rethrow_exception(cause_);
  if (consequence_) std::rethrow_exception(consequence_);
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& each) {
    return each.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace zl
