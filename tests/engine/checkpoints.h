// What tests of checkpoints share: short runs that keep them, and what lies in a folder.
// Ownership: values. Threads: one test.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/engine/comparisons.h"
#include "tests/results/fixtures.h"

namespace zl::test {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << "in: " << (text)

// Resumes where it can.
inline ProgramOptions kept_in(const std::string& folder, std::int64_t count,
                              std::int64_t every = 2) {
  ProgramOptions options = steps(count);
  options.checkpoint = {folder, every, true, {{"run", "tests"}}};
  return options;
}

inline std::int64_t newest_step(const std::string& folder) {
  const auto steps = completed_steps(folder);
  return steps.empty() ? 0 : steps.front();
}

inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Of a run that fails; empty: it does not.
inline std::string failure_of(int ranks, const ModelConfig& model, const Strategy& s,
                              const ProgramOptions& options) {
  try {
    run_cpu(ranks, model, s, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Where syncing is free: for tests that keep many steps.
inline std::filesystem::path in_memory() {
  const std::filesystem::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::path(testing::TempDir());
}

// So small that hundreds of runs take seconds.
inline ModelConfig smallest_gpt2() {
  ModelConfig model = tiny_gpt2();
  model.layers = 1;
  model.hidden = 16;
  model.heads = 2;
  model.head_size = model.kv_heads = model.ffn = 0;  // as hidden and heads have it
  model.max_sequence = 8;
  model.complete();
  return model;
}

}  // namespace zl::test
