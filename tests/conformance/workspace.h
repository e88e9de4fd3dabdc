// Host tensors of one test, and running an op on copies of them on a backend.
// Ownership: a Workspace owns its tensors; views into it live as long as it does. Threads: used by
// one thread.
#pragma once

#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "core/ops/dropout_spec.h"
#include "tests/conformance/harness.h"
#include "tests/seed.h"

namespace zl::test {

double get(const TensorView& view, std::int64_t index);
void set(const TensorView& view, std::int64_t index, double value);  // rounds to the view's type
double rounded(DType dtype, double value);  // as a tensor of that type would hold it

// Replaces every present tensor of the op by change(view).
void remap(Op& op, const std::function<TensorView(const TensorView&)>& change);

// One distinct tensor of an op (several fields may alias it).
struct Operand {
  TensorView view;
  bool read = false, written = false;
};
std::vector<Operand> operands_of(const Op& op);

class Workspace {
 public:
  explicit Workspace(std::uint64_t seed) : random_(seed) {}

  std::mt19937_64& random() { return random_; }
  std::int64_t pick(std::initializer_list<std::int64_t> choices);
  float uniform(float low, float high);
  bool coin() { return pick({0, 1}) == 1; }
  DropoutSpec dropout(float p);

  TensorView zeros(DType dtype, const Shape& shape);
  TensorView normal(DType dtype, const Shape& shape, double scale = 1.0);
  // At least scale / 100, so that quotients by the root of a variance are well conditioned.
  TensorView positive(DType dtype, const Shape& shape, double scale = 1.0);
  TensorView integers(const Shape& shape, std::int32_t low, std::int32_t high);  // i32, inclusive
  TensorView numbers(const std::vector<std::int32_t>& values);                   // i32
  TensorView copy(const TensorView& view);
  TensorView widened(const TensorView& view);  // a copy in f64; of i32, a copy

 private:
  std::mt19937_64 random_;
  std::deque<std::vector<std::byte>> tensors_;
};

// Runs the op (views into a Workspace) on a backend: uploads, runs, downloads what it writes.
// Outputs that are not read are NaN before. Fails the test when bytes beside a tensor or a tensor
// that is only read change.
void run_on(Harness& harness, const Op& op);

}  // namespace zl::test
