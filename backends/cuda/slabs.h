// The slabs of a device: GPU memory, pinned and pageable host memory.
// Ownership: slabs belong to whoever reserved them. Threads: one rank's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "core/device/memory.h"

namespace zl::cuda {

class Slabs {
 public:
  // nullptr when there is no more memory of that kind; Error{failed} when CUDA fails otherwise.
  std::byte* reserve(MemorySpace space, std::int64_t bytes);
  // Nothing may use the slab any more.
  void release(MemorySpace space, std::byte* slab, std::int64_t bytes);
  // Whether the address is in a slab of pageable host memory.
  bool is_pageable(const std::byte* address) const;

 private:
  std::map<const std::byte*, std::int64_t> pageable_;  // bytes by address
};

}  // namespace zl::cuda
