#include "core/optim/optimizer.h"
#include "core/ops/elementwise.h"
#include "core/ops/optimizer.h"

#include <cmath>

namespace zl {
namespace {

bool follows(const TensorView& a, const TensorView& b) {
  return a.empty() ? b.empty() : a.data + a.bytes() == b.data;
}

TensorView extended(const TensorView& view, std::int64_t count) {
  return view.empty() ? view : TensorView{view.data, view.dtype, Shape{view.count() + count}};
}

}  // namespace

bool has_first_moment(const OptimizerConfig& config) {
  return config.kind != OptimizerKind::sgd || config.momentum != 0;
}

bool has_second_moment(const OptimizerConfig& config) { return config.kind != OptimizerKind::sgd; }

Optimizer::Optimizer(RankContext& context, const OptimizerConfig& config,
                     std::vector<UpdateRange> ranges, bool replicated, const OptimizerHome& home)
    : context_(context),
      config_(config),
      ranges_(std::move(ranges)),
      replicated_(replicated),
      rounding_(home.rounding),
      stream_(home.stream),
      state_(home.state) {
  for (const UpdateRange& range : ranges_) {
    offsets_.push_back(elements_);
    elements_ += range.weights.count();
  }
  const bool own = state_.master.empty() && state_.first.empty() && state_.second.empty();
  if (own) {
    // 0/1 Adam moves working weights away from the masters.
    const bool moves = config.kind == OptimizerKind::zero_one_adam;
    if (moves || ranges_.front().weights.dtype != DType::f32) masters_ = allocate("master weights");
    const char* first = has_second_moment(config) ? "first moment" : "momentum";
    if (has_first_moment(config)) first_ = allocate(first);
    if (has_second_moment(config)) second_ = allocate("second moment");
    state_ = {masters_, first_, second_};
  }
  make_pieces();
}

Tensor Optimizer::allocate(const char* what) {
  Tensor tensor = context_.allocate(DType::f32, Shape{elements_}, MemoryTag::optimizer, {what});
  context_.run(Fill{tensor.view, 0});
  return tensor;
}

TensorView Optimizer::master(std::size_t range) const {
  const TensorView& weights = ranges_[range].weights;
  return has_masters() ? state_.master.flat(offsets_[range], weights.count()) : weights;
}

void Optimizer::archive(StateArchive& archive, const std::string& prefix) {
  archive.integer(prefix + "steps", steps_);
  archive.tensor(prefix + "master", masters_.view);
  archive.tensor(prefix + "first_moment", first_.view);
  archive.tensor(prefix + "second_moment", second_.view);
  archive.tensor(prefix + "average_trust_ratios", trust_averages_.view);
}

void Optimizer::make_pieces() {
  const bool per_parameter =
      config_.kind == OptimizerKind::lamb || config_.kind == OptimizerKind::onebit_lamb;
  const bool merge = !per_parameter && !rounding_.on;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    Piece piece{master(i), ranges_[i].gradient, has_masters() ? ranges_[i].weights : TensorView{},
                offsets_[i], i};
    if (!pieces_.empty() && merge) {
      Piece& last = pieces_.back();
      if (follows(last.param, piece.param) && follows(last.gradient, piece.gradient) &&
          follows(last.copy, piece.copy)) {
        last.gradient = extended(last.gradient, piece.count());
        last.copy = extended(last.copy, piece.count());
        last.param = extended(last.param, piece.count());
        continue;
      }
    }
    pieces_.push_back(piece);
  }
}

TensorView Optimizer::gradient_of(const Piece& piece) const {
  TensorView gradient = piece.gradient;
  gradient.data += gradient_shift_ * static_cast<std::int64_t>(size_of(gradient.dtype));
  return gradient;
}

void Optimizer::step(const StepScalars& scalars) {
  ++steps_;
  if (config_.kind == OptimizerKind::sgd) {
    sgd(scalars);
  } else if (config_.kind == OptimizerKind::lamb) {
    lamb(scalars);
  } else {
    adam(scalars);
  }
}

void Optimizer::adam(const StepScalars& scalars) {
  AdamStep op;
  op.lr = static_cast<float>(scalars.lr);
  op.beta1 = static_cast<float>(scalars.beta1);
  op.beta2 = static_cast<float>(scalars.beta2);
  op.epsilon = static_cast<float>(config_.epsilon);
  op.weight_decay = static_cast<float>(config_.weight_decay);
  op.grad_scale = static_cast<float>(scalars.gradient_scale);
  op.decoupled = config_.kind != OptimizerKind::adam;
  if (config_.bias_correction) {
    op.bias1 = static_cast<float>(1.0 - std::pow(scalars.beta1, static_cast<double>(steps_)));
    op.bias2 = static_cast<float>(1.0 - std::pow(scalars.beta2, static_cast<double>(steps_)));
  }
  op.stochastic = rounding_.on;
  for (const Piece& piece : pieces_) {
    const UpdateRange& range = ranges_[piece.range];
    // The high bit tells them from dropout's streams.
    op.key = {rounding_.seed, static_cast<std::uint32_t>(steps_),
              0x80000000u | static_cast<std::uint32_t>(range.parameter)};
    op.base = static_cast<std::uint64_t>(range.begin);
    op.param = piece.param;
    op.grad = gradient_of(piece);
    op.copy = piece.copy;
    op.m = state_.first.flat(piece.offset, piece.count());
    op.v = state_.second.flat(piece.offset, piece.count());
    context_.run(stream_, op);
  }
}

void Optimizer::sgd(const StepScalars& scalars) {
  for (const Piece& piece : pieces_) {
    const TensorView momentum =
        config_.momentum != 0 ? state_.first.flat(piece.offset, piece.count()) : TensorView{};
    context_.run(
        stream_,
        SgdStep{piece.param, gradient_of(piece), momentum, piece.copy,
                static_cast<float>(scalars.lr), static_cast<float>(config_.momentum),
                static_cast<float>(config_.weight_decay),
                static_cast<float>(scalars.gradient_scale), config_.nesterov, steps_ == 1});
  }
}

// Norms of a parameter and its update are over all ranks: bounds by a max, then the
// order-independent squares, so that the trust ratio does not depend on the partition.
void Optimizer::lamb(const StepScalars& scalars) {
  const auto pieces = static_cast<std::int64_t>(pieces_.size());
  const Label label{"lamb"};
  Tensor updates = context_.allocate(DType::f32, Shape{elements_}, MemoryTag::workspace, label);
  Tensor bounds = context_.allocate(DType::f32, Shape{2 * pieces}, MemoryTag::workspace, label);
  Tensor squares = context_.allocate(DType::f64, Shape{4 * pieces}, MemoryTag::workspace, label);
  const double power = static_cast<double>(steps_);
  const bool correct = config_.bias_correction;
  for (std::int64_t i = 0; i < pieces; ++i) {
    const Piece& piece = pieces_[static_cast<std::size_t>(i)];
    const TensorView update = updates.view.flat(piece.offset, piece.count());
    context_.run(
        LambUpdate{piece.param, piece.gradient, state_.first.flat(piece.offset, piece.count()),
                   state_.second.flat(piece.offset, piece.count()), update,
                   static_cast<float>(scalars.beta1), static_cast<float>(scalars.beta2),
                   static_cast<float>(config_.epsilon), static_cast<float>(config_.weight_decay),
                   correct ? static_cast<float>(1.0 - std::pow(scalars.beta1, power)) : 1.0f,
                   correct ? static_cast<float>(1.0 - std::pow(scalars.beta2, power)) : 1.0f,
                   static_cast<float>(scalars.gradient_scale)});
    context_.run(AbsMax{piece.param, bounds.view.flat(2 * i, 1)});
    context_.run(AbsMax{update, bounds.view.flat(2 * i + 1, 1)});
  }
  const bool shared = context_.ranks() > 1 && !replicated_;
  if (shared) reduce_scalars(bounds, ReduceOp::max);
  for (std::int64_t i = 0; i < pieces; ++i) {
    const Piece& piece = pieces_[static_cast<std::size_t>(i)];
    const TensorView update = updates.view.flat(piece.offset, piece.count());
    const std::int64_t total = replicated_ ? piece.count() : piece.count() * context_.ranks();
    context_.run(
        SquaredSum{piece.param, bounds.view.flat(2 * i, 1), squares.view.flat(4 * i, 2), total});
    context_.run(
        SquaredSum{update, bounds.view.flat(2 * i + 1, 1), squares.view.flat(4 * i + 2, 2), total});
  }
  if (shared) reduce_scalars(squares, ReduceOp::sum);
  for (std::int64_t i = 0; i < pieces; ++i) {
    const Piece& piece = pieces_[static_cast<std::size_t>(i)];
    context_.run(LambApply{
        piece.param, updates.view.flat(piece.offset, piece.count()), squares.view.flat(4 * i, 2),
        squares.view.flat(4 * i + 2, 2), piece.copy, static_cast<float>(scalars.lr),
        static_cast<float>(config_.lamb_min_trust), static_cast<float>(config_.lamb_max_trust),
        trust_averages_.view.empty() ? TensorView{} : trust_averages_.view.flat(i, 1),
        static_cast<float>(config_.onebit.coeff_beta)});
  }
}

void Optimizer::reduce_scalars(const TensorView& values, ReduceOp op) {
  const Segment segment{values, values};
  context_.collective(StreamId::compute,
                      {CollectiveKind::all_reduce, op, Purpose::control, {&segment, 1}});
}

}  // namespace zl
