// What the files of a checkpoint say of the run that they are of, and what can be told from it.
// Ownership: values. Threads: pure functions.
#pragma once

#include "core/checkpoint/labels.h"
#include "core/model/model_config.h"
#include "core/train/strategy.h"

namespace zl {

// One label a value of the canonical forms: "strategy/zero_optimization/stage".
Labels identity_of(const ModelConfig& model, const Strategy& strategy);

// What identity_of() was given, from labels that hold its own among others. Throws Error{invalid}
// naming `path` where they do not.
struct Identified {
  ModelConfig model;
  Strategy strategy;
};
Identified identified_by(const Labels& labels, int ranks, const std::string& path);

}  // namespace zl
