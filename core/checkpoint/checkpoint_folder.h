// The folder of a run's checkpoints: `folder/step-00000010/rank-0-of-4.safetensors` and, once the
// files of all ranks are written, `folder/step-00000010/manifest.safetensors`. Which steps it
// holds, what is removed from it, and that one run writes to it. Ownership: a FolderLock owns its
// open folder. Threads: free to use from any; a folder has one lock in all processes, and only who
// holds it removes and renames.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zl {

std::string step_folder(const std::string& folder, std::int64_t step);
std::string checkpoint_file(const std::string& folder, std::int64_t step, int rank, int ranks);
std::string manifest_file(const std::string& folder, std::int64_t step);

// The steps that have a manifest, whatever it is, newest first; none where `folder` is missing.
std::vector<std::int64_t> completed_steps(const std::string& folder);

// What runs that were killed left: steps without a manifest, and temporary files. Error{invalid}
// naming the folder and the fix when it holds what zerolab kept before there were manifests.
void remove_leftovers(const std::string& folder);

// The completed steps up to `newest`, but for the last `kept` of them.
void remove_old_steps(const std::string& folder, std::int64_t newest, std::size_t kept);

// Renames the folder of a step that cannot be used, whatever is in its place, so that the step can
// be written anew; returns its new path. One that was put aside before goes.
std::string put_aside(const std::string& folder, std::int64_t step);

// "rm -r 'my folder'".
std::string removal_of(const std::string& folder);

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
