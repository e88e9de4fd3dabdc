// What `zerolab calibrate` trains: small models of many shapes, each under the strategies whose ops
// are to be priced. Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/optim/optimizer_config.h"
#include "scenarios/deepspeed/imported_strategy.h"
#include "scenarios/files/scenario.h"
#include "scenarios/machine/calibration_options.h"

namespace zl {

enum CalibrationTrait : unsigned {
  kBrief = 1,    // trained under few styles: it takes long
  kRare = 2,     // under the rare styles, too
  kInFiles = 4,  // with weights and state in files, where there is a folder
  kQkNorm = 8
};

struct CalibrationShape {
  std::int64_t hidden, heads, layers, sequence, micro_batch, vocab;
  const char* family = "gpt2";
  unsigned traits = 0;  // CalibrationTrait
  // Times the steps of others: the kernel moves threads that often sleep from core to core, and
  // keeps them for tenths of a second where a step takes longer or shorter.
  int more_steps = 1;
  std::int64_t kv_heads = 0;  // 0: as many as heads

  bool is(CalibrationTrait trait) const { return (traits & trait) != 0; }
};

// What the runs must show between them: whole and sharded gradients, gathers, recomputation, and
// streams that overlap; compressed momenta, host copies and updates, and files. The rare ones show
// the ops that only they have.
struct CalibrationStyle {
  const char* name;
  int stage;
  bool once = true;  // at one moment only where quiet ones are not asked for: it saves minutes
  bool recompute = false;
  OptimizerKind optimizer = OptimizerKind::adamw;
  Tier tier = Tier::device;  // of weights and state
  int sub_group = 0;         // what is updated at once, in hidden^2 elements; of tiers that swap
  int least_ranks = 1;
  bool quantized = false, tensor = false;
};

struct CalibrationJob {
  int ranks;
  std::string precision;
  CalibrationShape shape;
  CalibrationStyle style;
};

// In words: "2 ranks, fp32, calibration-128, zero-1".
std::string words_of(const CalibrationJob& job);

// Of a GPU, or of a processor whose `cores` the ranks share. Where ranks outnumber them, as many as
// there are cores are measured, too: their prices are told from those. Without options.nvme_path no
// files are.
std::vector<CalibrationJob> calibration_jobs(const CalibrationOptions& options, bool on_gpu,
                                             int cores);

// Of the square matrix product whose rate is the ceiling.
std::int64_t calibration_peak_size(const CalibrationOptions& options, bool on_gpu);

Scenario calibration_scenario(const CalibrationJob& job, std::int64_t steps);
ImportedStrategy calibration_strategy(const CalibrationJob& job, const std::string& folder);

}  // namespace zl
