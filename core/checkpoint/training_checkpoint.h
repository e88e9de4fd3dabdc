// Checkpoints of a training run: `folder/step-00000010/rank-0-of-4.safetensors`, one file per rank,
// each whole or absent. A step counts when the files of all its ranks are there; the newest two
// steps are kept.
// Ownership: refers to the context and the engine. Threads: one rank's thread.
#pragma once

#include <cstdint>
#include <string>

namespace zl {

class Engine;
class RankContext;

struct CheckpointConfig {
  std::string folder;      // empty: none are written or read
  std::int64_t every = 0;  // steps; 0: only after the last one
  bool resume = false;     // start from the newest checkpoint, where there is one
  // What the state belongs to (model, strategy, ...): another text refuses to be resumed.
  std::string identity = {};
};

// The newest step in `folder` of which `ranks` files are complete; 0: none.
std::int64_t newest_checkpoint(const std::string& folder, int ranks);

// Before the first step: throws what save_checkpoint would only find after it, Error{failed} for a
// folder that cannot be made.
void prepare_checkpoints(const CheckpointConfig& config);

// Writes the state of this rank after its last step. Throws Error{failed} when the disk refuses.
void save_checkpoint(const CheckpointConfig& config, RankContext& context, Engine& engine);

// Reads the newest checkpoint into the engine, whose coming step then is the next; false: there is
// none. Every rank must call it. Throws Error{invalid} naming the file: damaged, or of another
// identity.
bool restore_checkpoint(const CheckpointConfig& config, RankContext& context, Engine& engine);

}  // namespace zl
