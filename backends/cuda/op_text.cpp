#include "backends/cuda/op_text.h"

#include "core/ops/op.h"

namespace zl::cuda {

std::string describe(const Op& op) {
  std::string text = op_name(op.index());
  std::visit(
      [&](const auto& each) {
        each.visit([&, first = true](const TensorView& view, Access) mutable {
          if (view.empty()) return;
          text += (first ? " " : ", ") + view.shape.text() + " " + name_of(view.dtype);
          first = false;
        });
      },
      op);
  return text;
}

}  // namespace zl::cuda
