#include "core/checkpoint/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <span>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "core/base/text.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

// Whole or not, newest first.
std::vector<std::int64_t> steps_in(const std::string& folder) {
  std::vector<std::int64_t> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("step-")) continue;
    const auto step = integer_in(std::string_view(name).substr(5));
    if (step && entry.path() == step_folder(folder, *step)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

// Something that is there but cannot be looked at counts: only what is surely not there was never
// written.
bool is_completed(const std::string& folder, std::int64_t step) {
  struct stat info {};
  return ::lstat(manifest_file(folder, step).c_str(), &info) == 0 || errno != ENOENT;
}

// The files that runs write, and what they leave when they are killed over them.
struct StepFiles {
  std::vector<std::string> whole, temporary;
};

StepFiles files_of(const std::string& folder, std::int64_t step) {
  StepFiles files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(step_folder(folder, step), ignored)) {
    const std::string path = entry.path().string();
    const std::string name = entry.path().filename().string();
    std::string own = manifest_file(folder, step);
    int rank = 0, ranks = 0;
    if (std::sscanf(name.c_str(), "rank-%d-of-%d.safetensors", &rank, &ranks) == 2) {
      own = checkpoint_file(folder, step, rank, ranks);
    }
    if (path == own) files.whole.push_back(path);
    if (is_temporary_of(path, own)) files.temporary.push_back(path);
  }
  return files;
}

void remove_all(const std::vector<std::string>& files) {
  for (const std::string& file : files) remove_entry(file);
}

// The manifest first: what is left of a step that is half removed was never completed.
void remove_step(const std::string& folder, std::int64_t step) {
  if (!remove_entry(manifest_file(folder, step)) && errno != ENOENT) return;
  const StepFiles files = files_of(folder, step);
  remove_all(files.whole);
  remove_all(files.temporary);
  remove_entry(step_folder(folder, step));  // only when empty
}

// The header of such a file begins with its metadata.
bool is_from_before_manifests(const std::string& path) {
  constexpr std::int64_t kBeginning = 256;
  try {
    const InputFile file(path);
    std::string text(static_cast<std::size_t>(std::min(kBeginning, file.size())), '\0');
    file.read(0, std::as_writable_bytes(std::span(text)));
    return text.find("\"zerolab.identity\":") != std::string::npos;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string step_folder(const std::string& folder, std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08lld", static_cast<long long>(step));
  return (fs::path(folder) / name).string();
}

std::string checkpoint_file(const std::string& folder, std::int64_t step, int rank, int ranks) {
  return step_folder(folder, step) + "/rank-" + std::to_string(rank) + "-of-" +
         std::to_string(ranks) + ".safetensors";
}

std::string manifest_file(const std::string& folder, std::int64_t step) {
  return step_folder(folder, step) + "/manifest.safetensors";
}

std::vector<std::int64_t> completed_steps(const std::string& folder) {
  std::vector<std::int64_t> steps = steps_in(folder);
  std::erase_if(steps, [&](std::int64_t step) { return !is_completed(folder, step); });
  return steps;
}

void remove_leftovers(const std::string& folder) {
  for (const std::int64_t step : steps_in(folder)) {
    const StepFiles files = files_of(folder, step);
    remove_all(files.temporary);
    if (is_completed(folder, step)) continue;
    if (std::any_of(files.whole.begin(), files.whole.end(), is_from_before_manifests)) {
      throw Error(ErrorCode::invalid,
                  step_folder(folder, step) +
                      ": was kept by an older zerolab, which this one cannot resume; go on with "
                      "that one, choose another --checkpoint folder or clear this one: " +
                      removal_of(folder));
    }
    log_info(step_folder(folder, step) + ": removing it, the run was killed before it was whole");
    remove_step(folder, step);
  }
}

void remove_old_steps(const std::string& folder, std::int64_t newest, std::size_t kept) {
  for (const std::int64_t step : completed_steps(folder)) {
    if (step > newest) continue;
    if (kept > 0) {
      --kept;
    } else {
      remove_step(folder, step);
    }
  }
}

std::string put_aside(const std::string& folder, std::int64_t step) {
  std::string from = step_folder(folder, step);
  std::string to = from + ".passed-over";
  if (!rename_entry(from, to)) {
    std::error_code ignored;
    fs::remove_all(to, ignored);
    if (!rename_entry(from, to)) return from;
  }
  return to;
}

std::string removal_of(const std::string& folder) {
  std::string quoted;
  for (const char letter : folder) {
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return "rm -r '" + quoted + "'";
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
