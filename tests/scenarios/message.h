// The message of the Error{invalid} that a call throws; fails the test when it throws none.
// Ownership: a value. Threads: pure function.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace zl {

template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
}

#define EXPECT_CONTAINS(text, part)                  \
  do {                                               \
    SCOPED_TRACE(std::string("expected: ") + #part); \
    expect_contains((text), (part));                 \
  } while (false)

}  // namespace zl
