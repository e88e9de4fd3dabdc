#include "core/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "core/base/error.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

std::string step_folder(const std::string& folder, std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return (fs::path(folder) / name).string();
}

// The ranks whose files a step has, by the number of ranks of the run that wrote them.
std::map<int, std::set<int>> ranks_in(const std::string& folder, std::int64_t step) {
  std::map<int, std::set<int>> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(step_folder(folder, step), ignored)) {
    int rank = 0, ranks = 0;
    const std::string name = entry.path().filename().string();
    if (std::sscanf(name.c_str(), "rank-%d-of-%d.safetensors", &rank, &ranks) != 2) continue;
    if (fs::path(checkpoint_file(folder, step, rank, ranks)).filename() == name) {
      found[ranks].insert(rank);
    }
  }
  return found;
}

std::string joined(const std::string& list, const char* between, const std::string& item) {
  return list.empty() ? item : list + between + item;
}

}  // namespace

std::string checkpoint_file(const std::string& folder, std::int64_t step, int rank, int ranks) {
  return step_folder(folder, step) + "/rank-" + std::to_string(rank) + "-of-" +
         std::to_string(ranks) + ".safetensors";
}

bool is_complete_checkpoint(const std::string& folder, std::int64_t step, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (!fs::exists(checkpoint_file(folder, step, rank, ranks))) return false;
  }
  return true;
}

std::vector<std::int64_t> checkpoint_steps(const std::string& folder) {
  std::set<std::int64_t, std::greater<>> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    std::int64_t step = 0;
    if (name.rfind("step-", 0) != 0) continue;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + 5, end, step);
    if (parsed.ec == std::errc() && parsed.ptr == end) steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

std::int64_t newest_checkpoint(const std::string& folder, int ranks, std::int64_t below) {
  for (const std::int64_t step : checkpoint_steps(folder)) {
    if (step < below && is_complete_checkpoint(folder, step, ranks)) return step;
  }
  return 0;
}

std::string describe_checkpoint(const std::string& folder, std::int64_t step) {
  std::string text;
  for (const auto& [ranks, present] : ranks_in(folder, step)) {
    std::string missing;
    for (int rank = 0; rank < ranks; ++rank) {
      if (present.count(rank) == 0) missing = joined(missing, ", ", std::to_string(rank));
    }
    text = joined(text, " and ",
                  "of " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") +
                      (missing.empty() ? "" : " without that of rank " + missing));
  }
  return "step " + std::to_string(step) + " " + (text.empty() ? "without files" : text);
}

std::string describe_checkpoints(const std::string& folder) {
  std::string text;
  for (const std::int64_t step : checkpoint_steps(folder)) {
    text = joined(text, "; ", describe_checkpoint(folder, step));
  }
  return text;
}

void make_checkpoint_folder(const std::string& folder) {
  std::error_code status;
  fs::create_directories(folder, status);
  if (!status) return;
  throw Error(ErrorCode::failed, folder + ": cannot make the folder of the checkpoint: " +
                                     status.message() + "; choose another --checkpoint folder");
}

FolderLock::FolderLock(const std::string& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
    return;
  }
  ::close(descriptor_);
  throw Error(ErrorCode::failed, folder +
                                     ": another run is writing its checkpoints there; wait for "
                                     "its end or choose another --checkpoint folder");
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace zl
