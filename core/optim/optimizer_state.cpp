#include "core/optim/optimizer_state.h"

#include "core/ops/elementwise.h"

namespace zl {
namespace {

bool follows(const TensorView& a, const TensorView& b) {
  return a.empty() ? b.empty() : a.data + a.bytes() == b.data;
}

TensorView extended(const TensorView& view, std::int64_t count) {
  return view.empty() ? view : TensorView{view.data, view.dtype, Shape{view.count() + count}};
}

}  // namespace

TensorView OptimizerState::Piece::gradient_behind(std::int64_t shift) const {
  TensorView behind = gradient;
  behind.data += shift * static_cast<std::int64_t>(size_of(behind.dtype));
  return behind;
}

OptimizerState::OptimizerState(RankContext& context, std::vector<UpdateRange> ranges,
                               bool replicated, const StateNeeds& needs, const StateViews& given)
    : context_(context), ranges_(std::move(ranges)), replicated_(replicated), views_(given) {
  for (const UpdateRange& range : ranges_) {
    offsets_.push_back(elements_);
    elements_ += range.weights.count();
  }
  if (given.empty()) {
    const bool masters = needs.own_masters || ranges_.front().weights.dtype != DType::f32;
    if (masters) masters_ = allocate("master weights");
    if (needs.first != nullptr) first_ = allocate(needs.first);
    if (needs.second != nullptr) second_ = allocate(needs.second);
    views_ = {masters_, first_, second_};
  }
  make_pieces(needs.merge);
}

Tensor OptimizerState::allocate(const char* what) const {
  Tensor tensor = context_.allocate(DType::f32, Shape{elements_}, MemoryTag::optimizer, {what});
  context_.run(Fill{tensor.view, 0});
  return tensor;
}

void OptimizerState::make_pieces(bool merge) {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const Piece piece{.param = master(i),
                      .gradient = ranges_[i].gradient,
                      .copy = has_masters() ? ranges_[i].weights : TensorView{},
                      .offset = offsets_[i],
                      .range = i};
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

TensorView OptimizerState::master(std::size_t range) const {
  return has_masters() ? part(views_.master, range) : ranges_[range].weights;
}

TensorView OptimizerState::part(const TensorView& state, std::size_t range) const {
  return state.flat(offsets_[range], ranges_[range].weights.count());
}

void OptimizerState::drop_first_moment() {
  first_.reset();
  views_.first = {};
}

void OptimizerState::reduce(const TensorView& values, ReduceOp op) const {
  if (replicated_ || context_.ranks(Axis::data) == 1) return;
  const Segment segment{values, values};
  context_.collective(StreamId::compute,
                      {CollectiveKind::all_reduce, op, Purpose::control, {&segment, 1}});
}

void OptimizerState::archive(StateArchive& archive, const std::string& prefix) {
  archive.integer(prefix + "steps", steps_);
  archive.tensor(prefix + "master", masters_.view);
  archive.tensor(prefix + "first_moment", first_.view);
  archive.tensor(prefix + "second_moment", second_.view);
}

}  // namespace zl
