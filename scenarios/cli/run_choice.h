// Which stored runs a command line means. Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zl::cli {

// "3,5,9", each once, in this order. Throws Error{usage} for what is no list of ids.
std::vector<std::int64_t> run_ids(const std::string& text);

// "2026", "2026-11-22", "2026-11-22 13:46" as the front of an ISO 8601 time; "" stays. Throws
// Error{usage} naming the option.
std::string moment(const std::string& text, const std::string& option);

}  // namespace zl::cli
