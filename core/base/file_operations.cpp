#include "core/base/file_operations.h"

#include <cerrno>
#include <map>
#include <mutex>

namespace zl {
namespace {

struct Named {
  const std::string* path;
  const char* doing;
};

struct UnderWay {
  std::mutex mutex;
  std::int64_t begun = 0;
  std::map<std::int64_t, Named> operations;  // by number, so oldest first
};

UnderWay& under_way() {
  static UnderWay all;
  return all;
}

}  // namespace

FileOperation::FileOperation(const std::string& path, const char* doing) {
  UnderWay& all = under_way();
  const std::lock_guard lock(all.mutex);
  number_ = ++all.begun;
  all.operations.emplace(number_, Named{&path, doing});
}

FileOperation::~FileOperation() {
  const int reason = errno;  // of the operation, for who looks at it next
  UnderWay& all = under_way();
  {
    const std::lock_guard lock(all.mutex);
    all.operations.erase(number_);
  }
  errno = reason;
}

std::optional<FileOperationUnderWay> oldest_file_operation() {
  UnderWay& all = under_way();
  const std::lock_guard lock(all.mutex);
  if (all.operations.empty()) return std::nullopt;
  const auto& [number, named] = *all.operations.begin();
  return FileOperationUnderWay{number, *named.path, named.doing};
}

}  // namespace zl
