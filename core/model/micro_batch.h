// One micro-batch on its way through the units (layers) of a stage: its ids, what flows between the
// units, and what each unit keeps for its backward. Several may be on their way at once.
// Ownership: a MicroBatch owns its tensors; ids and the loss belong to the engine. Threads: one
// rank's thread.
#pragma once

#include <memory>
#include <vector>

#include "core/model/kv_cache.h"
#include "core/model/linear_gradient.h"
#include "core/ops/dropout_spec.h"
#include "core/rank/rank_context.h"

namespace zl {

class SparseAttention;

// Shapes and random keys of one micro-batch.
struct BatchGeometry {
  std::int64_t batch = 0, sequence = 0;
  DType dtype = DType::f32;
  std::uint64_t seed = 0;
  std::uint32_t micro_step = 0;   // optimizer step * accumulation + micro-batch: keys dropout
  std::int64_t first_sample = 0;  // global index of this rank's first sequence in the micro-batch
  bool drop_attention = false, drop_activation = false;  // selective recomputation
  bool keeps_attention = false;                          // what a recomputed block gave
  bool train = true;                                     // false: no dropout
  int row_parts = 1, row_part = 0;  // sequence parallelism: this rank's part of the stream's rows
  // Generation: the rows are of the sequences of a cache, which they extend; `batch` is 1 then.
  const CacheExtension* extension = nullptr;
  const SparseAttention* sparse = nullptr;  // null: attention without blocks
  TensorView lengths = {};  // of an encoder's sequences, without padding: i32[batch]

  std::int64_t rows() const { return batch * sequence; }
  // Of the stream between units, and of norms.
  std::int64_t stream_rows() const { return rows() / row_parts; }
};

// The dropout sites of a unit; the embedding uses `embedding` of unit 0.
enum class DropoutSite : std::uint32_t {
  embedding = 0,
  attention = 1,
  attention_out = 2,
  mlp_out = 3,
  first_row = 4,  // of a head of labels
  pooled = 5
};
DropoutSpec dropout_spec(double p, const BatchGeometry& batch, int unit, DropoutSite site,
                         std::int64_t elements_per_sample);
// Of the stream's rows of `hidden` elements.
DropoutSpec stream_dropout(double p, const BatchGeometry& batch, int unit, DropoutSite site,
                           std::int64_t hidden);

// The stream between units: value = x + dropout(add); add is absent after the embedding. `x`
// belongs to `owned`, or to the activations of the block that made it.
struct ResidualPair {
  TensorView x;
  Tensor owned, add;
};

// The stream's value as one tensor, with the bits that the next norm would take. unit: the block
// that made `add`, under whose key it is dropped.
Tensor merged(RankContext& context, ResidualPair stream, const BatchGeometry& batch, double dropout,
              int unit);

// What a unit keeps of a micro-batch for its backward.
struct Activations {
  virtual ~Activations() = default;
  Tensor input;  // all that a recomputed unit keeps
};

// The ids of a micro-batch on the device, as an Objective lays them out.
struct DeviceBatch {
  TensorView tokens;    // i32[batch * sequence]
  TensorView targets;   // likewise, or of labels i32[batch]; -1: the row does not count
  TensorView segments;  // as tokens, of models that have them: which text each belongs to
};

// What becomes of the loss: `sum` += weight * mean over the rows that count (their sum by
// counted_rows); gradients start from
// gradient_scale times the gradient of that mean.
struct LossTerms {
  TensorView sum;
  double weight = 1, gradient_scale = 1;
  double counted_rows = 0;  // Objective::counted_rows
};

struct MicroBatch {
  int slot = 0;  // which of those that may be on their way at once
  BatchGeometry geometry;
  DeviceBatch ids;
  LossTerms loss;
  ResidualPair stream;  // forward: what the coming unit takes
  Tensor gradient;      // backward: of the residual stream, what the coming unit takes
  // Whether the gradients of linear weights wait, in the order of the backward.
  bool splits_backward = false;
  std::vector<LinearGradient> waiting;

  // What unit `unit` keeps, made when it is first asked for.
  template <class T>
  T& kept(int unit) {
    const auto index = static_cast<std::size_t>(unit);
    if (index >= kept_.size()) kept_.resize(index + 1);
    if (kept_[index] == nullptr) kept_[index] = std::make_unique<T>();
    return static_cast<T&>(*kept_[index]);
  }
  void forget(int unit) {
    if (static_cast<std::size_t>(unit) < kept_.size()) kept_[unit].reset();
  }

 private:
  std::vector<std::unique_ptr<Activations>> kept_;
};

// Where the backward is split: keeps what the gradient of a linear layer's weights is made of until
// its half comes. group: as LinearGradient.
void put_off(MicroBatch& micro, int unit, const LinearWeights& linear, Tensor& dout, Tensor& x,
             const TensorGroup* group = nullptr);
// The same of a layer whose output is added to the stream: the gradient of that output is `dropped`
// or, where that is empty, the stream's, in whose place comes another.
void put_off_projection(RankContext& context, MicroBatch& micro, int unit,
                        const LinearWeights& linear, Tensor& dropped, Tensor& x);

}  // namespace zl
