// Checkpoints of a training run: one safetensors file per rank and step, each whole or absent and
// with a checksum. A step counts when the files of all its ranks are there; the newest two steps
// are kept.
// Ownership: refers to the context; rank 0 owns the lock of the folder. Threads: one
// rank's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_folder.h"
#include "core/checkpoint/safetensors.h"

namespace zl {

class Archived;
class RankContext;

struct CheckpointConfig {
  std::string folder;      // empty: none are written or read
  std::int64_t every = 0;  // steps; 0: only after the last one
  bool resume = false;     // start from the newest checkpoint, where there is one
  // What the state belongs to (model, strategy, ...): another text refuses to be resumed.
  std::string identity = {};
};

class Checkpoints {
 public:
  // Before the first step, on every rank. Rank 0 makes and locks the folder, and throws Error
  // naming it: {failed} when it cannot be made or another run writes to it, {invalid} when it holds
  // checkpoints and the run is not to resume from them.
  Checkpoints(CheckpointConfig config, RankContext& context);

  // Reads the newest step whose files are whole and undamaged into `state`, on every rank; its
  // coming step then is the next. Returns the steps that need not be taken again and says
  // in `notes` what was done, newer steps that were passed over included. Throws Error{invalid}
  // naming folder or file: no step is whole, nothing is left of `steps`, of another identity.
  std::int64_t begin(Archived& state, std::int64_t steps, std::vector<std::string>& notes);

  // Writes the state of this rank where it is due, and removes its files of the steps before the
  // newest two. Throws Error{failed} when the disk refuses.
  void after_step(Archived& state, bool last);

 private:
  std::int64_t restore_newest(Archived& state, std::vector<std::string>& notes);
  std::int64_t start_anew(const std::vector<std::string>& damaged,
                          std::vector<std::string>& notes) const;
  std::string why_not(const std::vector<std::string>& damaged, std::int64_t step) const;
  std::optional<SafetensorsFile> read_if_whole(std::int64_t step) const;
  void restore(const SafetensorsFile& file, Archived& state) const;
  void remove_before(std::int64_t newest) const;
  std::string file_of(std::int64_t step) const;
  std::int64_t largest(std::int64_t mine) const;

  CheckpointConfig config_;
  RankContext& context_;
  std::optional<FolderLock> lock_;
};

}  // namespace zl
