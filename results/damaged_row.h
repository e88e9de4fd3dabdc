// What is said of a damaged row of the database: the file, the table, the row and the column.
// Ownership: values. Threads: a pure function.
#pragma once

#include <string>

#include "core/base/error.h"

namespace zl {

struct RowName {
  std::string file, table, row;
};

// Error{invalid} "FILE: damaged: table T, row R, column C: PROBLEM; the fix".
Error damaged_row(const RowName& name, const std::string& column, const std::string& problem);

}  // namespace zl
