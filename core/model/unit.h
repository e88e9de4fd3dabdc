// A unit of a model: what is entered, left, gathered and recomputed as one. The embedding, each
// block (layer), and the head are units; unit numbers count from 0 in the order of the forward.
// Ownership: units refer to the context and the access; what they keep is the micro-batch's.
// Threads: one rank's thread.
#pragma once

#include <vector>

#include "core/model/micro_batch.h"

namespace zl {

class ModelUnit {
 public:
  explicit ModelUnit(int number) : number_(number) {}
  virtual ~ModelUnit() = default;
  ModelUnit(const ModelUnit&) = delete;
  ModelUnit& operator=(const ModelUnit&) = delete;

  int number() const { return number_; }

  // Takes the micro-batch's stream and leaves its own output there; keeps what backward() needs.
  virtual void forward(MicroBatch& micro) = 0;
  // Takes the gradient of its output and leaves that of its input; what it kept is gone, but for
  // the weight gradients that it leaves to micro.waiting, where the micro-batch splits backwards.
  virtual void backward(MicroBatch& micro) = 0;

  // Whether it may drop what it keeps and make it again from its input.
  virtual bool can_recompute() const { return false; }
  // Drops all but the output, which is on its way, and returns the input.
  virtual Tensor keep_output_only(MicroBatch& /*micro*/) { return {}; }
  // Forward again, from the stream or, where the stream is empty, from the kept input; `last`: the
  // output is not needed.
  virtual void recompute(MicroBatch& /*micro*/, bool /*last*/) {}
  // Where backward() may find that nothing but the input was kept.
  virtual bool needs_recompute(MicroBatch& /*micro*/) { return false; }
  virtual void restore_input(MicroBatch& /*micro*/, Tensor&& /*input*/) {}

 private:
  int number_;
};

// A unit that ends a model: makes the loss from what its forward kept. backward() starts with it.
class LossUnit : public ModelUnit {
 public:
  using ModelUnit::ModelUnit;
  // The loss without gradients; what the forward kept is gone.
  virtual void evaluate(MicroBatch& micro) = 0;
  // Instead of a loss: out[i] = the logits of row rows[i], [rows.size(), >= vocab] in the compute
  // type; what the forward kept is gone.
  virtual void logits(MicroBatch& micro, const std::vector<std::int64_t>& rows,
                      const TensorView& out) = 0;
};

}  // namespace zl
