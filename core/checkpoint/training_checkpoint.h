// Checkpoints of a training run: one safetensors file per rank and step that says what it belongs
// to, and a manifest that is written when all of them are; a step without it was never completed.
// The newest two completed steps are kept.
// Ownership: refers to the context and the communicator; rank 0 owns the lock of the folder.
// Threads: one rank's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/checkpoint_folder.h"
#include "core/checkpoint/labels.h"

namespace zl {

class Archived;
class Communicator;
class RankContext;
class StateCopy;

struct CheckpointConfig {
  std::string folder;      // empty: none are written or read
  std::int64_t every = 0;  // steps; 0: only after the last one
  bool resume = false;     // start from the newest checkpoint, where there is one
  // What the state belongs to (model, strategy, data, ...): with others it is not resumed.
  Labels identity = {};
};

// What a rank wrote for a step, as it was when the step was completed; `labels`: of the manifest.
// Throws Error{invalid} naming the file and what is wrong with it.
SafetensorsFile read_rank_file(const std::string& folder, std::int64_t step, int rank, int ranks,
                               Labels labels);

class Checkpoints {
 public:
  // Before the first step, on every rank of `world`. Rank 0 makes and locks the folder, removes
  // what runs that were killed left in it, and throws Error naming it: {failed} when it cannot be
  // made or another run writes to it, {invalid} when it holds completed steps and the run is not to
  // resume from them.
  Checkpoints(CheckpointConfig config, RankContext& context, Communicator& world);

  // Reads the newest completed step whose files are undamaged and this run's into `state`, on every
  // rank; its coming step then is the next. Returns the steps that need not be taken again and says
  // in `notes` what was done: newer steps that were passed over are put aside. Starts anew where no
  // step was ever completed. Throws Error{invalid} naming the folder and what is wrong with each
  // step when none can be used, or more than `steps` are done.
  std::int64_t begin(Archived& state, std::int64_t steps, std::vector<std::string>& notes);

  // The best that the run was judged, in words that the caller reads again: written with each of
  // the coming steps, and, after begin(), that of the step it resumed. Empty: nothing judged it.
  void set_best(std::string text) { best_ = std::move(text); }
  const std::string& best() const { return best_; }

  // Writes the state of this rank where it is due, then, when all ranks have, the manifest, and
  // removes what is older than the newest two. Throws Error{failed} on every rank when one of them
  // could not write. What the ranks tell each other here is not in their books.
  void after_step(Archived& state, bool last);

 private:
  // Of rank 0: a step and why it is not resumed, newest first.
  using PassedOver = std::vector<std::pair<std::int64_t, std::string>>;

  std::int64_t restore_newest(Archived& state, std::vector<std::string>& notes);
  std::int64_t newest_promising(PassedOver& passed) const;
  void pass_over(std::int64_t step, const std::string& why, PassedOver& passed) const;
  void put_aside_all(const PassedOver& passed, std::vector<std::string>& notes) const;
  [[noreturn]] void refuse_all(const PassedOver& passed) const;
  [[noreturn]] void refuse(const std::string& why) const;
  [[noreturn]] void follow(std::int64_t rank) const;

  Labels labels_of(std::int64_t step) const;
  std::string why_unusable(std::int64_t step, int rank) const;
  WrittenFile write(std::int64_t step, const StateCopy& copy) const;
  void complete(std::int64_t step, const std::vector<WrittenFile>& files) const;

  std::vector<WrittenFile> tell_all(const WrittenFile& mine) const;
  std::int64_t largest(std::int64_t mine) const;
  std::vector<std::int32_t> largest(std::vector<std::int32_t> mine) const;

  CheckpointConfig config_;
  RankContext& context_;
  Communicator& world_;
  std::string best_;
  std::optional<FolderLock> lock_;
};

}  // namespace zl
