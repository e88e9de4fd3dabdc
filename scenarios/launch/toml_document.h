// TOML as a flat list of keys with their lines.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "scenarios/launch/foreign_keys.h"

namespace zl {

bool has_toml();

// In the order of the file, tables joined with dots: "parallelism.tensor_parallel_degree". Dates
// are texts. Throws Error{invalid} "source:line:column: ..."; Error{unavailable} without toml++.
std::vector<ForeignKey> toml_keys(std::string_view text, std::string_view source);

}  // namespace zl
