#include "core/base/error.h"

namespace zl {

void check_failed(const char* condition, const char* file, int line, std::string_view message) {
  throw Error(ErrorCode::failed, std::string(message) + " [" + condition + " at " + file + ":" +
                                     std::to_string(line) + "]");
}

}  // namespace zl
