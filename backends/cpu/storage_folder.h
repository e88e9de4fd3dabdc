// The folder of one rank's files in the folder that users name, locked while its process lives:
// what a killed run left behind has no lock, and the next run removes it.
// Ownership: owns the folder and removes it with the files in it. Threads: one at a time.
#pragma once

#include <string>

namespace zl::cpu {

class StorageFolder {
 public:
  // Removes the leftovers in `parent`, then makes <parent>/zerolab-<process>-<n>-rank<rank>.
  // Error{failed} naming the folder, what the system said and the fix.
  StorageFolder(const std::string& parent, int rank);
  ~StorageFolder();
  StorageFolder(const StorageFolder&) = delete;
  StorageFolder& operator=(const StorageFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  bool make_and_lock();

  std::string path_;
  int lock_ = -1;  // descriptor; the system frees the lock when the process ends
};

}  // namespace zl::cpu
