// GELU, forward and backward (as training does it, too: in place of dy), beside the multiply-add
// peak of the same moments, over elements that stay in the cache: what an element costs, which
// shows whether its function is still inlined and vectorised (a call for each makes it six times
// slower). Some elements are verified first. OMP_WAIT_POLICY=passive zerolab_bench
// --benchmark_filter=activation
#include <cmath>
#include <numbers>
#include <string>

#include "backends/cpu/ops/ops.h"
#include "core/ops/activation.h"
#include "core/ops/elementwise.h"
#include "tests/bench/paired.h"

namespace {

using namespace zl;
using zl::bench::Storage;

double gelu(ActivationKind kind, double x) {
  if (kind == ActivationKind::gelu_erf) return x / 2 * std::erfc(-x / std::numbers::sqrt2);
  return x / 2 * (1 + std::tanh(std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x)));
}

struct Activations {
  static constexpr std::int64_t kRows = 64, kColumns = 1024;
  Storage x{DType::f32, Shape{kRows, kColumns}}, y{DType::f32, x.view.shape};
  Storage dy{DType::f32, x.view.shape}, dx{DType::f32, x.view.shape};
  Storage large{DType::f32, x.view.shape};  // of slope 1: what is changed in place stays as it is
  ActivationForward forward;
  ActivationBackward backward, in_place;

  explicit Activations(ActivationKind kind)
      : forward{kind, x.view, y.view},
        backward{kind, x.view, dy.view, dx.view},
        in_place{kind, large.view, dy.view, dy.view} {
    cpu::execute(RandomNormal{x.view, 1.0, {1, 0, 0}, 0}, {1});
    cpu::execute(Fill{dy.view, 1.0}, {1});
    cpu::execute(Fill{large.view, 30.0}, {1});
  }
  bool is_right() const {
    cpu::execute(forward, {1});
    cpu::execute(backward, {1});
    constexpr double kStep = 1e-5;
    for (std::int64_t i = 0; i < 100; ++i) {
      const double at = zl::bench::value_at(x.view, i);
      const double slope =
          (gelu(forward.kind, at + kStep) - gelu(forward.kind, at - kStep)) / (2 * kStep);
      const double value = gelu(forward.kind, at);
      const bool is_near = std::abs(zl::bench::value_at(y.view, i) - value) < 1e-5 &&
                           std::abs(zl::bench::value_at(dx.view, i) - slope) < 1e-5;
      if (!is_near) return false;
    }
    return true;
  }
};

template <class Op>
void add_direction(const std::string& name, ActivationKind kind, Op Activations::*op) {
  const auto run = [=](benchmark::State& state) {
    const Activations problem(kind);
    if (!problem.is_right()) return state.SkipWithError("wrong activation");
    const Op& each = problem.*op;
    zl::bench::run_paired(state, 1, each.cost().flops, [&] { cpu::execute(each, {1}); });
    state.counters["ns_an_element"] =
        1e6 * state.counters["ms"].value / (Activations::kRows * Activations::kColumns);
  };
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Unit(benchmark::kMicrosecond);
}

const int registered_activations = [] {
  for (const auto& [name, kind] : {std::pair{"gelu_tanh", ActivationKind::gelu_tanh},
                                   std::pair{"gelu_erf", ActivationKind::gelu_erf}}) {
    add_direction(std::string("activation_forward/") + name, kind, &Activations::forward);
    add_direction(std::string("activation_backward/") + name, kind, &Activations::backward);
    add_direction(std::string("activation_backward_in_place/") + name, kind,
                  &Activations::in_place);
  }
  return 0;
}();

}  // namespace
