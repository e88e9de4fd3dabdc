// Reads a DeepSpeed configuration file, verbatim, into a Strategy and says what became of each key.
// Ownership: values. Threads: pure functions.
//
// Every key is honoured, defaulted, named as not implemented yet, or rejected with the nearest
// known key. The keys are in deepspeed_keys*.cpp; zerolab's own are under
// "x-zerolab":
//   name        the strategy's name in results (default: the file's name)
//   deepspeed_version       the release whose behaviour the file has (default: 0.19.8)
//   recompute   none | full | every:K | blocks:N | blocks:N,N.. | selective:attention |
//               selective:mlp | selective:attention,mlp | selective:products | auto
//   deepspeed_scale_order   true: unscale with the updated loss scale, for parity studies
//   deepspeed_compat        true: 1-bit Adam without bias correction, its first gradient dropped
//   automatic_freeze        true: 1-bit Adam freezes before freeze_step when the second moment's
//                           norm has changed by less than a factor of variance_stability (0.96)
#pragma once

#include <string_view>

#include "scenarios/deepspeed/imported_strategy.h"

namespace zl {

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
