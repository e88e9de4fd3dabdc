#include "tests/conformance/reference.h"

#include "tests/conformance/reference_ops.h"

namespace zl::test {

void run_reference(const Op& op, const Round& round) {
  std::visit(
      [&](const auto& concrete) {
        if constexpr (requires { reference(concrete, round); }) {
          reference(concrete, round);
        } else {
          reference(concrete);
        }
      },
      op);
}

}  // namespace zl::test
