// One rank's program under a software, in the numbers that its bytes are made of.
// Ownership: refers to the model, the strategy and the software. Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/held_block.h"
#include "simulator/held_memory.h"

namespace zl::sim {

using HeldParts = std::vector<HeldPart>;

struct HeldProgram {
  const ModelConfig& model;
  const Strategy& strategy;
  const SoftwareMemory& software;
  ElementBytes element;
  BlockBytes block;
  std::int64_t tokens = 0, sequence = 0, ranks = 1;  // ranks: of one copy of the shards
  // root: all that is in no block.
  std::int64_t parameters = 0, block_parameters = 0, root_parameters = 0;
  std::int64_t weight = 0, gradient = 0, moments = 0, scratch = 0;  // bytes for each parameter

  // FSDP: units of weights are gathered in the compute type, their gradients reduced in fp32.
  bool gathers() const;
  bool accumulates() const { return strategy.gradient_accumulation > 1; }
  // Over which what this stage of ZeRO shards is cut.
  std::int64_t shards(int stage) const { return strategy.zero.stage >= stage ? ranks : 1; }
  std::int64_t head_parameters() const { return model.vocab * model.hidden; }
  std::int64_t block_matrices() const;
  // Is the block's forward computed again?
  bool is_again(std::int64_t layer) const;
};

HeldProgram held_program(const ModelConfig& model, const Strategy& strategy, int ranks,
                         std::int64_t sequence, const SoftwareMemory& software);

// Of one of `shards`, the last one padded.
std::int64_t shard_bytes(std::int64_t bytes, std::int64_t shards);

// Held all the time.
HeldParts state_parts(const HeldProgram& program);

// Kept by the first `layers` blocks. `running`: they are those before the one whose backward runs,
// whose group was computed again.
void add_kept(const HeldProgram& program, std::int64_t layers, bool running, HeldParts& parts);

// Weights of the root and of so many blocks; where weights stay from the forward to the backward,
// of all blocks.
void add_gathered(const HeldProgram& program, std::int64_t blocks, HeldParts& parts);

}  // namespace zl::sim
