// A chunk of one rank's program under a software, in the numbers that its bytes are made of.
// Ownership: refers to the model, the strategy and the software. Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/pipeline/pipeline_config.h"
#include "simulator/held_block.h"
#include "simulator/held_memory.h"

namespace zl::sim {

using HeldParts = std::vector<HeldPart>;

struct HeldProgram {
  const ModelConfig& model;  // its vocabulary padded
  const Strategy& strategy;
  const SoftwareMemory& software;
  ElementBytes element;
  BlockProgram block_program;
  BlockBytes block;
  std::int64_t tokens = 0, ranks = 1;  // ranks: of one copy of the shards
  // Of the chunk.
  int stage_index = 0;
  std::int64_t layers = 0;
  bool has_embedding = true, has_head = true;
  // Of the rank's part of the model, all its chunks. root: all that is in no block.
  std::int64_t parameters = 0, root_parameters = 0;
  std::int64_t block_parameters = 0;  // of one
  std::int64_t rank_layers = 0;
  std::int64_t others = 0;  // kept by other micro-batches in flight, and by other chunks

  // Bytes for each parameter.
  std::int64_t weight = 0, gradient = 0, master = 0, moments = 0, scratch = 0;

  // FSDP: units of weights are gathered in the compute type, their gradients reduced.
  bool gathers() const;
  // What gradients are copied into stays between backwards.
  bool keeps_buckets() const {
    return strategy.zero.stage == 3 || (strategy.zero.stage == 1 && accumulates());
  }
  bool accumulates() const { return strategy.gradient_accumulation > 1; }
  // Over which what this stage of ZeRO shards is cut.
  std::int64_t shards(int stage) const { return strategy.zero.stage >= stage ? ranks : 1; }
  std::int64_t head_parameters() const;
  std::int64_t logits() const;  // of the rows that are made at once
  std::int64_t block_matrices() const;
  // Parameters of the largest tensor in the optimizer's shard; under ZeRO-3 each tensor is cut,
  // else all of them end to end.
  std::int64_t largest_piece() const;
  // Is the block's forward computed again?
  bool is_again(std::int64_t layer) const;
};

// Which stage is a chunk of a rank.
int stage_of(const PipelineConfig& config, int rank, int chunk);

// The model as the software pads it.
ModelConfig padded_model(const ModelConfig& model, const Strategy& strategy,
                         const SoftwareMemory& software);

// All numbers but those of a rank of the pipeline and of its chunk.
HeldProgram held_program(const ModelConfig& padded, const Strategy& strategy, int ranks,
                         std::int64_t sequence, const SoftwareMemory& software);
void set_rank(HeldProgram& program, int rank);
void set_chunk(HeldProgram& program, int stage, const UnitRange& units);

// Of one of `shards`, the last one padded.
std::int64_t shard_bytes(std::int64_t bytes, std::int64_t shards);

std::int64_t sum(const HeldParts& parts);

// Of all parameters of the rank: what is of blocks, and the rest.
void add_states(const HeldProgram& program, MemoryTag tag, const char* what, std::int64_t bytes,
                HeldParts& parts);

// Held all the time.
HeldParts state_parts(const HeldProgram& program);

// Kept by the first `layers` blocks of the chunk. `running`: they are those before the one whose
// backward runs, whose group was computed again.
void add_kept(const HeldProgram& program, std::int64_t layers, bool running, HeldParts& parts);

// Kept by one micro-batch of the chunk between its forward and its backward.
std::int64_t kept_bytes(const HeldProgram& program);

// Weights of the root and of so many blocks, where the backward of `passed` blocks has ended; where
// weights stay from the forward to the backward, of all blocks.
void add_gathered(const HeldProgram& program, std::int64_t blocks, std::int64_t passed,
                  HeldParts& parts);

// What gradients are copied into to be reduced, of so many parameters: under ZeRO-3 one bucket,
// else two where they are reduced beside the backward; ZeRO-2 makes a flat copy of a full one.
void add_buckets(const HeldProgram& program, std::int64_t passed, HeldParts& parts);

// Gradients from the steps before, or of so many parameters that the backward has passed; cut from
// that stage of ZeRO on.
void add_gradients(const HeldProgram& program, std::int64_t passed, HeldParts& parts,
                   int cut_from = 2);

}  // namespace zl::sim
