// A row of the database, each value checked as it is read: the file may be damaged, or of anybody.
// Ownership: refers to the statement, whose row it is. Threads: the statement's.
#pragma once

#include <cstdint>
#include <string>

#include "results/damaged_row.h"

namespace SQLite {
class Column;
class Statement;
}  // namespace SQLite

namespace zl {

// Throw damaged_row() for values of another type or out of range.
class CheckedRow {
 public:
  CheckedRow(SQLite::Statement& statement, RowName name);

  std::string text(const char* column) const;
  std::int64_t whole(const char* column) const;  // 0 to 2^60, so that a few of them have a sum
  int count(const char* column) const;
  std::uint64_t bits(const char* column) const;
  double number(const char* column) const;  // NULL: NaN
  std::string blob(const char* column) const;
  [[noreturn]] void fail(const char* column, const std::string& problem) const;

 private:
  SQLite::Statement& statement_;
  RowName name_;
};

}  // namespace zl
