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

#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << "in: " << (text)

}  // namespace zl
