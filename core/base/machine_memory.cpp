#include "core/base/machine_memory.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/bytes.h"
#include "core/base/error.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUnlimited = INT64_MAX;

// The number after `key` in a file of "key number" lines; without a key, the number it starts with.
std::int64_t number_in(const fs::path& file, const std::string& key, std::int64_t fallback) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string first;
    std::int64_t number = 0;
    if (!key.empty() && (!(words >> first) || first != key)) continue;
    return words >> number ? number : fallback;
  }
  return fallback;
}

// The names of a version of control groups.
struct GroupFiles {
  const char *folder, *limit, *usage, *reclaimable;
};
constexpr GroupFiles kVersion1{"sys/fs/cgroup/memory", "memory.limit_in_bytes",
                               "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

// A limit binds all groups below it. A container may not see the groups above its own.
std::int64_t left_in_groups(const fs::path& root, const GroupFiles& files, fs::path group) {
  std::int64_t left = kUnlimited;
  for (;; group = group.parent_path()) {
    const fs::path folder = root / files.folder / group.relative_path();
    const std::int64_t limit = number_in(folder / files.limit, "", kUnlimited);
    if (limit != kUnlimited) {
      const std::int64_t used = number_in(folder / files.usage, "", 0) -
                                number_in(folder / "memory.stat", files.reclaimable, 0);
      left = std::min(left, std::max<std::int64_t>(0, limit - used));
    }
    if (!group.has_relative_path()) return left;
  }
}

// Lines are "number:controllers:/group"; version 2 has number 0 and names no controllers.
std::int64_t left_in_all_groups(const fs::path& root) {
  std::int64_t left = kUnlimited;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != "memory") continue;
    const GroupFiles& files = controllers.empty() ? kVersion2 : kVersion1;
    left = std::min(left, left_in_groups(root, files, line.substr(second + 1)));
  }
  return left;
}

}  // namespace

std::int64_t available_memory(const std::string& root) {
  const std::int64_t kibibytes = number_in(fs::path(root) / "proc/meminfo", "MemAvailable:", 0);
  return std::min(kibibytes > 0 ? kibibytes << 10 : kUnlimited, left_in_all_groups(root));
}

std::int64_t machine_memory() {
  const char* given = std::getenv("ZEROLAB_MEMORY");
  if (given == nullptr || *given == '\0') {
    const std::int64_t available = available_memory();
    return available - available / 16;
  }
  try {
    return parse_bytes(given);
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid, std::string("ZEROLAB_MEMORY: ") + error.what());
  }
}

}  // namespace zl
