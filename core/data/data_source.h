// Where micro-batches come from.
// Ownership: a Batch is a value. Threads: batch() may run on many threads at once.
#pragma once

#include <cstdint>
#include <vector>

namespace zl {

// The ids of one micro-batch of one rank, row by row: [micro_batch, sequence_length] each.
struct Batch {
  std::vector<std::int32_t> tokens;
  // Of labels: [micro_batch]. -1: the row does not count in the loss.
  std::vector<std::int32_t> targets;
  // For an encoder: of each row its tokens without the padding behind them; which of two texts each
  // token belongs to. Empty: there is no padding; one text.
  std::vector<std::int32_t> lengths = {}, segments = {};
  // Rows that count in the whole step, over all ranks and micro-batches, whose losses the step
  // averages; 0: each micro-batch averages its own.
  std::int64_t step_rows = 0;

  bool operator==(const Batch&) const = default;
};

// Which one: micro-batch `micro` of optimizer step `step`, of data-parallel rank `rank` of `ranks`.
struct BatchRequest {
  std::int64_t step = 0, micro = 0;
  int rank = 0, ranks = 1;
  std::int64_t micro_batch = 1, sequence_length = 0;
  std::int64_t micros = 1;  // micro-batches of each rank in the step

  std::int64_t samples() const { return micros * ranks * micro_batch; }  // of the step
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

// Samples with an end, each of them once: what a model is judged by. Of a request the step does not
// matter, and rows beyond the last sample do not count.
class EvaluationSource : public DataSource {
 public:
  virtual std::int64_t samples() const = 0;
};

}  // namespace zl
