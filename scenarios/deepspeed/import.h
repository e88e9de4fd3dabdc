// Reads a DeepSpeed configuration file, verbatim, into a Strategy and says what became of each key.
// Ownership: values. Threads: pure functions.
//
// Every key is honoured, defaulted, named as not implemented yet, or rejected with the nearest
// known key (SPECS section 1). The keys are in deepspeed_keys*.cpp; zerolab's own are under
// "x-zerolab":
//   name        the strategy's name in results (default: the file's name)
//   recompute   none | full | every:K | selective:attention | selective:mlp |
//               selective:attention,mlp | auto
//   deepspeed_scale_order   true: unscale with the updated loss scale, for parity studies
//   deepspeed_compat        true: 1-bit Adam without bias correction, its first gradient dropped
//   automatic_freeze        true: 1-bit Adam freezes before freeze_step when the second moment's
//                           norm has changed by less than a factor of variance_stability (0.96)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  bool batch_is_default =
      false;  // micro_batch and gradient_accumulation yield to a file that states a batch
  // Of files that say neither fp16 nor bf16; none: DeepSpeed's, fp32.
  std::optional<DType> default_precision = {};
};

struct ImportedStrategy {
  Strategy strategy;
  std::vector<Effect> effects;          // the file's keys in its order, then the defaults
  std::vector<std::string> warnings;    // differences that do not change what is trained
  std::vector<std::string> refusals;    // recognised, not implemented yet: do not run
  std::vector<std::string> rejections;  // errors; only inspect_deepspeed returns any
};

// For `show`: rejected keys are reported, not thrown. Throws Error{invalid} only for text that is
// not one JSON object without duplicate keys.
ImportedStrategy inspect_deepspeed(std::string_view json_text, std::string_view source_name,
                                   const ImportContext& context);

// Throws Error{invalid} when any key is rejected: "strategy.KEY: what is wrong and what to write".
ImportedStrategy import_deepspeed(std::string_view json_text, std::string_view source_name,
                                  const ImportContext& context);

// Throws Error{invalid} when the strategy asks for what is not implemented yet.
void require_runnable(const ImportedStrategy& imported);

}  // namespace zl
