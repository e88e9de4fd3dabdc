#include "results/damaged_row.h"

#include <fmt/format.h>

#include "core/base/text.h"

namespace zl {

Error damaged_row(const RowName& name, const std::string& column, const std::string& problem) {
  return Error(ErrorCode::invalid,
               fmt::format("{}: damaged: table {}, row {}, column {}: {}; restore a copy of the "
                           "file, or delete the row with sqlite3",
                           name.file, name.table, shortened(name.row), column, problem));
}

}  // namespace zl
