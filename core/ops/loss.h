// Fused classifier and the sum that turns per-token losses into a number.
#pragma once

#include "core/ops/checks.h"

namespace zl {

// What one rank knows of rows of logits whose columns are cut over ranks (Megatron-LM's
// VocabParallelCrossEntropy): statistics[i] = {maximum, sum of e^(logit - maximum), the target's
// logit or 0 where another rank has it} of logits[i, :vocab], which are the tokens from first_token
// on. Without any (vocab 0) they are {-inf, 0, 0}. statistics: [m, 3] f32 (f64).
struct LogitStatistics {
  static constexpr const char* kName = "logit_statistics";
  static constexpr std::int64_t kValues = 3;
  TensorView logits, targets, statistics;
  std::int64_t vocab = 0, first_token = 0;

  void validate() const {
    require(targets.dtype == DType::i32 && targets.count() == logits.rows(), kName,
            "targets is i32 with one id per row of logits");
    require(statistics.count() == kValues * logits.rows(), kName,
            "statistics has three elements per row");
    require(vocab <= logits.columns(), kName, "vocab is at most the width of logits");
  }
  Cost cost() const {
    return streaming_cost(*this, 4.0 * static_cast<double>(logits.count()), logits.rows(),
                          logits.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(logits, Access::read), f(targets, Access::read), f(statistics, Access::write);
  }
};

// losses[i] = logsumexp(logits[i, :vocab]) - logits[i, targets[i]] (0 for target -1: ignored).
// With write_gradient the logits are overwritten by grad_scale * (softmax - onehot), zero for
// ignored rows and for columns >= vocab. logits[m, >= vocab]; targets i32[m]; losses f32[m] (f64).
// Where ranks have columns each, these are the tokens from first_token on and `statistics`
// [ranks, m, 3] holds what LogitStatistics says of all ranks: sum and losses are over all columns.
struct CrossEntropy {
  static constexpr const char* kName = "cross_entropy";
  TensorView logits, targets, losses;
  std::int64_t vocab = 0;
  float grad_scale = 1;
  bool write_gradient = true;
  TensorView statistics = {};
  std::int64_t first_token = 0;

  void validate() const {
    require(targets.dtype == DType::i32 && targets.count() == logits.rows(), kName,
            "targets is i32 with one id per row of logits");
    require(losses.count() == logits.rows(), kName, "losses has one element per row");
    require(vocab <= logits.columns(), kName, "vocab is at most the width of logits");
    require(statistics.count() % (LogitStatistics::kValues * logits.rows()) == 0, kName,
            "statistics has three elements per rank and row");
  }
  Cost cost() const {
    return streaming_cost(*this, 6.0 * static_cast<double>(logits.count()), logits.rows(),
                          logits.columns());
  }
  template <class F>
  void visit(F&& f) const {
    f(logits, write_gradient ? Access::read_write : Access::read), f(targets, Access::read);
    f(statistics, Access::read), f(losses, Access::write);
  }
};

// out[0] (+)= scale * sum of x, in f64 in a fixed order (CPU: by index). x, out: f32 or f64.
struct Sum {
  static constexpr const char* kName = "sum";
  TensorView x, out;
  double scale = 1.0;
  bool accumulate = false;

  void validate() const { require(out.count() == 1, kName, "out has one element"); }
  Cost cost() const { return streaming_cost(*this, static_cast<double>(x.count()), 1, x.count()); }
  template <class F>
  void visit(F&& f) const {
    f(x, Access::read), f(out, accumulate ? Access::read_write : Access::write);
  }
};

}  // namespace zl
