// Ops on the host's memory, for offload.
#include "backends/cpu/device.h"
#include "core/ops/op.h"
#include "tests/cuda_fake/fake.h"

namespace zl::cuda::fake {

void check_reach(const Op& op, Reach forbidden, const char* whose) {
  const auto check = [&](const TensorView& view, Access) {
    if (view.empty() || reach_of(view.data) != forbidden) return;
    throw Error(ErrorCode::failed,
                std::string(op_name(op.index())) + " gets memory that " + whose + " cannot reach");
  };
  std::visit([&](const auto& each) { each.visit(check); }, op);
}

void run_on_host(const Op& op, int threads) {
  check_reach(op, Reach::device, "the host");
  cpu::run_op(op, threads);
}

}  // namespace zl::cuda::fake
