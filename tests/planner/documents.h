// Documents that tests of the planner and of the dashboard evaluate.
// Ownership: values. Threads: pure functions.
#pragma once

#include <atomic>

#include "scenarios/planner/document.h"

namespace zl::test {

inline const std::atomic<bool> kGoOn{false};  // nobody cancels

// The five ZeRO strategies, of which some do not fit.
inline Document llama_on_a_node() {
  return Document::parse(
      R"({"schema": 1, "model": "llama3-8b", "cluster": "8xh100", "run": {"precision": "bf16"}})",
      "llama");
}

// Two steps of a model of a few thousand parameters.
inline Document tiny_study() { return Document::open("tiny-gpt2"); }

}  // namespace zl::test
