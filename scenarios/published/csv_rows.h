// CSV as RFC 4180 has it: a header, then rows of as many fields.
// Ownership: values. Threads: pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zl {

struct CsvRow {
  int line = 0;  // of the file, from 1
  std::map<std::string, std::string, std::less<>> fields;

  // Empty where there is no such column.
  const std::string& at(std::string_view column) const;
};

// Throws Error{invalid} naming the source, the line and the column: no header, a column of
// `required` that is missing, rows with more or fewer fields, a quote that does not end.
std::vector<CsvRow> read_csv(std::string_view text, const std::string& source,
                             const std::vector<std::string>& required);

}  // namespace zl
