// The model that the checkpoint of a run holds, without the run.
// Ownership: values. Threads: the calling one, and ranks of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/labels.h"
#include "core/model/parameters.h"
#include "core/model/weight_source.h"
#include "scenarios/run/run_identity.h"

namespace zl {

struct CheckpointedRun {
  std::string folder;  // of the run: the one with the steps
  std::int64_t step = 0;
  int ranks = 0;
  Identified is;
  Labels labels;  // of the manifest
};

// Whether it is the folder of a run's checkpoints, or one of --checkpoint.
bool is_checkpoint(const std::string& folder);

// The newest completed step. Throws Error{invalid} naming the folder, where it has the checkpoints
// of several runs, or none, and naming a manifest that is damaged.
CheckpointedRun read_checkpointed_run(const std::string& folder);

// Its parameters in the order of ParameterTable(model), each whole and in fp32, from the files of
// all ranks. Throws Error{invalid} naming a file that is missing, damaged or not what the step was
// completed with.
using TakeCheckpointed = std::function<void(const ParameterSpec&, const std::vector<float>&)>;
void gather_checkpointed_model(const CheckpointedRun& run, const TakeCheckpointed& take);

// All of them in memory.
std::shared_ptr<const WeightSource> checkpointed_weights(const CheckpointedRun& run);

}  // namespace zl
