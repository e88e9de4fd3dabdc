// Where micro-batches come from.
// Ownership: a Batch is a value. Threads: batch() may run on many threads at once.
#pragma once

#include <cstdint>
#include <vector>

namespace zl {

// The ids of one micro-batch of one rank, row by row: [micro_batch, sequence_length] each.
struct Batch {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;  // -1: the row does not count in the loss

  bool operator==(const Batch&) const = default;
};

// Which one: micro-batch `micro` of optimizer step `step`, of data-parallel rank `rank` of `ranks`.
struct BatchRequest {
  std::int64_t step = 0, micro = 0;
  int rank = 0, ranks = 1;
  std::int64_t micro_batch = 1, sequence_length = 0;

  // Index of the first sample among those of the step.
  std::int64_t first_sample() const { return (micro * ranks + rank) * micro_batch; }
};

class DataSource {
 public:
  virtual ~DataSource() = default;
  // The same request gives the same batch, for ever. Throws Error{invalid} where a sample does not
  // fit.
  virtual Batch batch(const BatchRequest& request) const = 0;
};

}  // namespace zl
