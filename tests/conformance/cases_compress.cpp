// Conformance cases of one-bit messages and of the halves of Adam.
#include <cmath>

#include "core/ops/compress.h"
#include "core/ops/frozen_adam.h"
#include "tests/conformance/cases.h"

namespace zl::test {
namespace {

// A message's shape: rows of odd and even length, around the block (1024 elements), with padding.
struct Message {
  std::int64_t rows, columns, count;
};

Message message(Workspace& w) {
  Message m{w.pick({1, 2, 3, 5}), w.pick({1, 7, 8, 12, 63, 64, 1023, 1024, 1029, 20000}), 0};
  const std::int64_t all = m.rows * m.columns;
  // Whole, one short, the last row and more empty, nothing real.
  m.count = std::max<std::int64_t>(0, w.pick({all, all - 1, all - m.columns - 3, 0}));
  return m;
}

TensorView bytes(Workspace& w, std::int64_t rows, std::int64_t columns) {
  const TensorView view = w.zeros(DType::u8, {rows, packed_bytes(columns)});
  for (std::int64_t i = 0; i < view.count(); ++i) {
    set(view, i, static_cast<double>(w.random()() % 256));
  }
  return view;
}

Op make_compress(Workspace& w, DType, bool zeros) {
  const Message m = message(w);
  SignCompress op;
  op.x = w.normal(DType::f32, {m.rows, m.columns});
  for (std::int64_t i = 0; zeros && i < op.x.count(); ++i) {
    const std::int64_t kind = w.pick({0, 1, 2});
    if (kind < 2) set(op.x, i, kind == 0 ? 0.0 : -0.0);  // both count as +
  }
  op.square = w.positive(DType::f64, {2}, 3.0);
  op.packed = w.zeros(DType::u8, {m.rows, packed_bytes(m.columns)});
  op.scale = w.zeros(DType::f32, {1});
  op.count = m.count;
  op.square_count = std::max<std::int64_t>(1, m.count);
  return op;
}

Op make_average(Workspace& w, DType) {
  const Message m = message(w);
  const std::int64_t parameters = w.pick({1, 4});
  SignAverage op;
  op.packed = bytes(w, m.rows, m.columns);
  op.scales = w.positive(DType::f32, {m.rows, parameters});
  op.out = w.normal(DType::f32, {m.columns});
  op.column = parameters - 1;
  op.count = std::min(m.count, m.columns);
  return op;
}

Op make_unpack(Workspace& w, DType) {
  const Message m = message(w);
  const std::int64_t parameters = w.pick({1, 4});
  SignUnpack op;
  op.packed = bytes(w, m.rows, m.columns);
  op.scales = w.positive(DType::f32, {m.rows, parameters});
  op.out = w.zeros(DType::f32, {m.rows, m.columns});
  op.column = parameters - 1;
  op.count = m.count;
  return op;
}

std::int64_t odd_count(Workspace& w) { return w.pick({1, 17, 1000, 1025, 33000}); }

Op make_momentum(Workspace& w, DType grad) {
  const std::int64_t n = odd_count(w);
  return MomentumStep{w.normal(DType::f32, {n}), w.normal(grad, {n}), w.uniform(0.8f, 0.95f),
                      w.uniform(0.1f, 2.0f), w.coin() ? w.positive(DType::f64, {1}) : TensorView{}};
}

Op make_frozen(Workspace& w, DType copy, bool with_copy) {
  const std::int64_t n = odd_count(w);
  FrozenAdamStep op;
  op.param = w.normal(DType::f32, {n});
  op.m = w.normal(DType::f32, {n}, 0.1);
  op.v = w.positive(DType::f32, {n}, 0.01);
  if (with_copy) op.copy = w.zeros(copy, {n});
  op.lr = w.uniform(1e-4f, 1e-1f);
  op.epsilon = 1e-6f;
  op.weight_decay = w.uniform(0.0f, 0.2f);
  op.bias1 = w.uniform(0.1f, 1.0f);
  op.bias2 = w.uniform(0.1f, 1.0f);
  return op;
}

Op make_local(Workspace& w, DType copy) {
  const std::int64_t n = odd_count(w);
  LocalAdamStep op;
  op.param = w.normal(DType::f32, {n});
  op.m = w.normal(DType::f32, {n}, 0.1);
  op.v = w.positive(DType::f32, {n}, 0.01);
  op.moved = w.normal(DType::f32, {n}, 0.1);
  op.copy = w.zeros(copy, {n});
  op.lr = w.uniform(1e-4f, 1e-1f);
  op.epsilon = 1e-3f;
  op.weight_decay = w.uniform(0.0f, 0.2f);
  return op;
}

Op make_shared(Workspace& w, DType copy) {
  const std::int64_t n = odd_count(w);
  SharedAdamStep op;
  op.param = w.normal(DType::f32, {n});
  op.m = w.zeros(DType::f32, {n});
  op.v = w.positive(DType::f32, {n}, 0.01);
  op.moved = w.normal(DType::f32, {n}, 0.1);
  op.copy = w.zeros(copy, {n});
  op.epsilon = 1e-2f;
  op.lr_sum = w.uniform(0.1f, 2.0f);
  return op;
}

}  // namespace

std::vector<Case> cases_of(Tag<SignCompress>) {
  const auto make = [](bool zeros) {
    return [=](Workspace& w, DType dtype) { return make_compress(w, dtype, zeros); };
  };
  return {{"sign_compress", {DType::f32}, make(false)},
          {"sign_compress_zeros", {DType::f32}, make(true)}};
}

std::vector<Case> cases_of(Tag<SignAverage>) {
  return {{"sign_average", {DType::f32}, make_average}};
}

std::vector<Case> cases_of(Tag<SignUnpack>) {
  return {{"sign_unpack", {DType::f32}, make_unpack, 0}};  // exact
}

std::vector<Case> cases_of(Tag<MomentumStep>) {
  return {{"momentum_step", kFloats, make_momentum}};
}

// Types of the cases below are those of the copy.
std::vector<Case> cases_of(Tag<FrozenAdamStep>) {
  const auto make = [](bool with_copy) {
    return [=](Workspace& w, DType copy) { return make_frozen(w, copy, with_copy); };
  };
  return {{"frozen_adam_step", {DType::f32, DType::bf16, DType::f16}, make(true)},
          {"frozen_adam_step_alone", {DType::f32}, make(false)}};
}

std::vector<Case> cases_of(Tag<LocalAdamStep>) {
  return {{"local_adam_step", {DType::f32, DType::bf16, DType::f16}, make_local}};
}

std::vector<Case> cases_of(Tag<DenominatorScale>) {
  return {{"denominator_scale", {DType::f32}, [](Workspace& w, DType) -> Op {
             const std::int64_t n = odd_count(w);
             return DenominatorScale{w.normal(DType::f32, {n}), w.positive(DType::f32, {n}), 1e-4f};
           }}};
}

std::vector<Case> cases_of(Tag<SharedAdamStep>) {
  return {{"shared_adam_step", {DType::f32, DType::bf16, DType::f16}, make_shared}};
}

}  // namespace zl::test
