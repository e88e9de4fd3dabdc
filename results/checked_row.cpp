#include "results/checked_row.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <limits>
#include <utility>

#include "core/base/text.h"

namespace zl {

CheckedRow::CheckedRow(SQLite::Statement& statement, RowName name)
    : statement_(statement), name_(std::move(name)) {}

void CheckedRow::fail(const char* column, const std::string& problem) const {
  throw damaged_row(name_, column, problem);
}

std::string CheckedRow::text(const char* column) const {
  const SQLite::Column value = statement_.getColumn(column);
  if (!value.isText()) fail(column, "is not a text");
  return value.getString();
}

std::int64_t CheckedRow::whole(const char* column) const {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  const SQLite::Column value = statement_.getColumn(column);
  if (value.isNull()) return 0;  // not measured
  if (!value.isInteger() || value.getInt64() < 0 || value.getInt64() > kMost) {
    fail(column, shortened(value.getString()) + " is not a whole number of 0 to 2^60");
  }
  return value.getInt64();
}

int CheckedRow::count(const char* column) const {
  const std::int64_t value = whole(column);
  if (value > std::numeric_limits<int>::max()) fail(column, std::to_string(value) + " is too much");
  return static_cast<int>(value);
}

std::uint64_t CheckedRow::bits(const char* column) const {
  const SQLite::Column value = statement_.getColumn(column);
  if (!value.isInteger()) fail(column, "is not a whole number");
  return static_cast<std::uint64_t>(value.getInt64());
}

double CheckedRow::number(const char* column) const {
  const SQLite::Column value = statement_.getColumn(column);
  if (value.isNull()) return std::numeric_limits<double>::quiet_NaN();
  if (!value.isFloat() && !value.isInteger()) fail(column, "is not a number");
  return value.getDouble();
}

std::string CheckedRow::blob(const char* column) const {
  const SQLite::Column value = statement_.getColumn(column);
  if (!value.isBlob()) fail(column, "is not a blob");
  return value.getString();
}

}  // namespace zl
