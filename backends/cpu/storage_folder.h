// The folder of one rank's files in the folder that users name, locked while its process lives:
// what a killed run left behind has no lock, and the next run of the same user removes it. Folders
// are held by descriptor, so that one that is exchanged for another, or for a link, is not
// followed. Ownership: owns the folder and removes it with the files in it. Threads: one at a time.
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
  struct Descriptor {
    ~Descriptor() { close(); }
    void close();
    int value = -1;
  };

  bool make_and_lock();

  std::string name_, path_;
  Descriptor parent_;
  Descriptor folder_;  // locked; the system frees the lock when the process ends
};

}  // namespace zl::cpu
