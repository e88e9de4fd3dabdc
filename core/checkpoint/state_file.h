// The state of one rank as a safetensors file.
// Ownership: StateCopy owns the bytes that it took. Threads: one rank's thread.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "core/checkpoint/labels.h"
#include "core/checkpoint/safetensors.h"

namespace zl {

class Archived;
class RankContext;

// The state between two steps, taken to host memory; every rank must take it.
class StateCopy {
 public:
  StateCopy(RankContext& context, Archived& state);

  // Throws Error{failed} when the disk refuses.
  WrittenFile write(const std::string& path, const Labels& labels) const;

 private:
  class Saving;

  std::deque<std::vector<std::byte>> buffers_;
  std::vector<NamedTensor> tensors_;
};

// Throws Error{invalid} naming the file and what of the state it does not have.
void restore_state(RankContext& context, const SafetensorsFile& file, Archived& state);

}  // namespace zl
