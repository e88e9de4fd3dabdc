// Shared libraries that are opened when they are first needed, so that the same program starts on
// machines without them.
// Ownership: a library stays open for the life of the process. Threads: any.
#pragma once

#include <string>
#include <vector>

namespace zl::cuda {

class SharedLibrary {
 public:
  // Looks for `file` ("libnccl.so.2") where the loader does (the program's RUNPATH,
  // LD_LIBRARY_PATH, the system), then in library_folders(). Throws Error{unavailable} that names
  // `what`, the places, and `fix`.
  SharedLibrary(const std::string& what, const std::string& file, const std::string& fix);

  const std::string& path() const { return path_; }
  void* handle() const { return handle_; }  // as dlopen() gave it

  // pointer = the function called `name`. Throws Error{unavailable} when there is none: the library
  // is older than what the backend was built with.
  template <class Function>
  void bind(Function*& pointer, const char* name) const {
    pointer = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  std::string what_, path_;
  void* handle_ = nullptr;
};

// Existing folders where CUDA's libraries usually are, in the order of search: of the toolkit
// (CUDA_HOME, CUDA_PATH, /usr/local/cuda), and nvidia/*/lib of a Python environment (VIRTUAL_ENV,
// CONDA_PREFIX, or a site-packages folder in LD_LIBRARY_PATH).
std::vector<std::string> library_folders();

}  // namespace zl::cuda
