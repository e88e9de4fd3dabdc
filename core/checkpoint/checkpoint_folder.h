// The folder of a run's checkpoints, `folder/step-00000010/rank-0-of-4.safetensors`: which steps it
// holds, which of them whole, and that one run writes to it.
// Ownership: a FolderLock owns its open folder. Threads: free to use from any; a folder has one
// lock in all processes.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace zl {

inline constexpr std::int64_t kAnyStep = std::numeric_limits<std::int64_t>::max();

std::string checkpoint_file(const std::string& folder, std::int64_t step, int rank, int ranks);

// The steps that have a folder, whole or not, newest first; none where `folder` is missing.
std::vector<std::int64_t> checkpoint_steps(const std::string& folder);

// Whether the files of all `ranks` ranks are there.
bool is_complete_checkpoint(const std::string& folder, std::int64_t step, int ranks);

// The newest step below `below` of which `ranks` files are there; 0: none.
std::int64_t newest_checkpoint(const std::string& folder, int ranks, std::int64_t below = kAnyStep);

// "step 7 of 3 ranks without that of rank 1": the files of one step in words.
std::string describe_checkpoint(const std::string& folder, std::int64_t step);
// The same of all steps.
std::string describe_checkpoints(const std::string& folder);

// Error{failed} naming the folder and the fix when it cannot be made.
void make_checkpoint_folder(const std::string& folder);

// Held while a run writes to the folder; goes with the process at the latest.
class FolderLock {
 public:
  // Error{failed} when another run holds it. A file system without locks gives none.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace zl
