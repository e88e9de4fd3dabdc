#include "core/ops/op.h"
#include "core/ops/op_list.h"
#include "core/rank/rank_context.h"

namespace zl {
namespace {

// The type of the first tensor that holds numbers.
template <class T>
DType dtype_of_op(const T& op) {
  DType dtype = DType::f32;
  bool first = true;
  op.visit([&](const TensorView& view, Access) {
    if (first && !view.empty() && view.dtype != DType::i32) {
      dtype = view.dtype;
      first = false;
    }
  });
  return dtype;
}

}  // namespace

template <class T>
void RankContext::run(StreamId stream, const T& op) {
  op.validate();
  Timing* timing = nullptr;
  if (options_.record_trace) timing = record_op(stream, kOpKind<T>, op.cost(), dtype_of_op(op));
  if (options_.record_accesses) {
    op.visit([&](const TensorView& view, Access access) { record_access(view, access); });
  }
  device_.run(stream, Op(op), timing);
}

#define ZL_RUN(OpType) template void RankContext::run<OpType>(StreamId, const OpType&);
ZL_OPS(ZL_RUN)
#undef ZL_RUN

}  // namespace zl
