// A strategy as it came out of a DeepSpeed file, and what became of each key.
// Ownership: values. Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/model/model_config.h"
#include "core/train/strategy.h"

namespace zl {

enum class EffectStatus : std::uint8_t { honoured, defaulted, not_implemented, rejected };
const char* name_of(EffectStatus status);

struct Effect {
  std::string key;        // as written in the file
  std::string given;      // JSON text; empty when the key is absent
  std::string effective;  // JSON text of the value in force; empty when rejected
  EffectStatus status = EffectStatus::honoured;
  std::string why;
};

// What the run already decides; zero and empty mean "the file decides".
struct ImportContext {
  std::int64_t ranks = 1;  // data-parallel ranks
  const ModelConfig* model = nullptr;
  std::optional<DType> precision = {};  // overrides the file
  std::int64_t micro_batch = 0;
  std::int64_t gradient_accumulation = 0;
  std::int64_t steps = 0;
  // micro_batch and gradient_accumulation yield to a file that states a batch.
  bool batch_is_default = false;
  // Of files that leave it open; none: no cluster is known yet, and "auto" stays.
  std::optional<DType> default_precision = {};
  // `ranks` yields to those that a file's three batch sizes imply: where nothing runs.
  bool infer_ranks = false;
  // Of files without x-zerolab.name; empty: the file's.
  std::string name = {};
};

struct ImportedStrategy {
  Strategy strategy;
  std::int64_t ranks = 1;               // the context's, or those that the file implies
  std::vector<Effect> effects;          // the file's keys in its order, then the defaults
  std::vector<std::string> warnings;    // differences that do not change what is trained
  std::vector<std::string> refusals;    // recognised, not implemented yet: do not run
  std::vector<std::string> rejections;  // errors; only inspect_deepspeed returns any
};

}  // namespace zl
