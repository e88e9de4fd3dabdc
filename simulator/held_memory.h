// What a training program holds on one device at its peak under another software: a closed form,
// where bytes under this core are those of the recording. A prediction, not a fact.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/model_config.h"
#include "core/train/run_result.h"
#include "core/train/strategy.h"
#include "simulator/cluster/software_memory.h"

namespace zl::sim {

struct HeldPart {
  MemoryTag tag{};
  const char* what = "";  // a literal
  std::int64_t bytes = 0;
  const char* layers = "";  // of which: embedding, blocks, head; a literal
};

// At the moment of the step at which most is held.
struct HeldMemory {
  int rank = 0;  // of the pipeline
  std::string when;
  std::vector<HeldPart> parts;  // none of 0 bytes
  std::int64_t reserved = 0;    // by the allocator
  std::int64_t device = 0;      // with context and libraries: what must fit

  TaggedBytes peak() const;
  std::int64_t total() const { return peak().total(); }
};

// Why the closed form does not hold there, in words; empty: it does.
std::string why_not_held(const ModelConfig& model, const Strategy& strategy,
                         const SoftwareMemory& software);

// Whether published runs or counts of the framework's own tracker support it.
bool is_supported(const Strategy& strategy, const SoftwareMemory& software);

// Of the fullest rank; `sequence` in tokens. Throws Error{invalid} with why_not_held().
HeldMemory held_memory(const ModelConfig& model, const Strategy& strategy, int ranks,
                       std::int64_t sequence, const SoftwareMemory& software);
// Of every rank of the pipeline.
std::vector<HeldMemory> held_by_rank(const ModelConfig& model, const Strategy& strategy, int ranks,
                                     std::int64_t sequence, const SoftwareMemory& software);

}  // namespace zl::sim
