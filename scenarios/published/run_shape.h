// The mesh, the batch and the model's sizes of a published run.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/published/published_run.h"

namespace zl {

// What cannot be said, in words; ends the expression of a run.
struct Inexpressible {
  std::string why;
};

struct RunShape {
  std::int64_t ranks = 1, tensor = 1, pipeline = 1, data = 1, chunks = 1;
  std::int64_t micro_batch = 1, accumulation = 1, sequence = 0;
  std::int64_t layers = 0, hidden = 0, vocab = 0;
  std::vector<std::int64_t> layers_per_stage;  // empty: equal

  double batch() const { return static_cast<double>(micro_batch * accumulation * data); }
};

// Throws Inexpressible where they do not fit each other or are not stated.
RunShape shape_of(const PublishedRun& run);

// A whole number of a row; empty or 0 is `fallback`, or, of what must be stated, Inexpressible.
std::int64_t whole(const CsvRow& row, const char* column, std::int64_t fallback);
std::int64_t stated(const CsvRow& row, const char* column);

bool is_llama(const CsvRow& row);
inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace zl
