#include "tests/conformance/workspace.h"
#include "core/ops/dropout_spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>

namespace zl::test {

double get(const TensorView& view, std::int64_t i) {
  switch (view.dtype) {
    case DType::f64:
      return view.as<const double>()[i];
    case DType::f32:
      return static_cast<double>(view.as<const float>()[i]);
    case DType::bf16:
      return static_cast<double>(to_float(view.as<const bfloat16>()[i]));
    case DType::f16:
      return static_cast<double>(to_float(view.as<const float16>()[i]));
    case DType::u8:
      return view.as<const std::uint8_t>()[i];
    default:
      return view.as<const std::int32_t>()[i];
  }
}

void set(const TensorView& view, std::int64_t i, double value) {
  switch (view.dtype) {
    case DType::f64:
      view.as<double>()[i] = value;
      break;
    case DType::f32:
      view.as<float>()[i] = static_cast<float>(value);
      break;
    case DType::bf16:
      view.as<bfloat16>()[i] = to_bfloat16(static_cast<float>(value));
      break;
    case DType::f16:
      view.as<float16>()[i] = to_float16(static_cast<float>(value));
      break;
    case DType::u8:
      view.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
      break;
    default:
      view.as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
  }
}

double rounded(DType dtype, double value) {
  std::byte bytes[sizeof(double)];
  const TensorView one{bytes, dtype, Shape{1}};
  set(one, 0, value);
  return get(one, 0);
}

void remap(Op& op, const std::function<TensorView(const TensorView&)>& change) {
  std::visit(
      [&](auto& concrete) {
        concrete.visit([&](const TensorView& view, Access) {
          // visit() shows the fields as const; `op` itself is not.
          if (!view.empty()) const_cast<TensorView&>(view) = change(view);
        });
      },
      op);
}

std::vector<Operand> operands_of(const Op& op) {
  std::vector<Operand> operands;
  const auto add = [&](const TensorView& view, Access access) {
    if (view.empty()) return;
    auto found = std::find_if(operands.begin(), operands.end(),
                              [&](const Operand& o) { return o.view.data == view.data; });
    if (found == operands.end()) found = operands.insert(operands.end(), {view, false, false});
    found->read |= access != Access::write;
    found->written |= access != Access::read;
  };
  std::visit([&](const auto& concrete) { concrete.visit(add); }, op);
  return operands;
}

std::int64_t Workspace::pick(std::initializer_list<std::int64_t> choices) {
  std::uniform_int_distribution<std::size_t> index(0, choices.size() - 1);
  return choices.begin()[index(random_)];
}

float Workspace::uniform(float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(random_);
}

DropoutSpec Workspace::dropout(float p) {
  DropoutSpec spec;
  spec.p = p;
  spec.key = {random_(), static_cast<std::uint32_t>(random_()),
              static_cast<std::uint32_t>(random_())};
  spec.base = random_() >> 20;
  return spec;
}

TensorView Workspace::zeros(DType dtype, const Shape& shape) {
  TensorView view{nullptr, dtype, shape};
  tensors_.emplace_back(static_cast<std::size_t>(std::max<std::int64_t>(view.bytes(), 1)));
  view.data = tensors_.back().data();
  return view;
}

TensorView Workspace::normal(DType dtype, const Shape& shape, double scale) {
  const TensorView view = zeros(dtype, shape);
  std::normal_distribution<double> distribution(0.0, scale);
  for (std::int64_t i = 0; i < view.count(); ++i) set(view, i, distribution(random_));
  return view;
}

TensorView Workspace::positive(DType dtype, const Shape& shape, double scale) {
  const TensorView view = normal(dtype, shape, scale);
  const double least = 0.01 * scale;
  for (std::int64_t i = 0; i < view.count(); ++i) {
    set(view, i, std::max(least, std::abs(get(view, i))));
  }
  return view;
}

TensorView Workspace::integers(const Shape& shape, std::int32_t low, std::int32_t high) {
  const TensorView view = zeros(DType::i32, shape);
  std::uniform_int_distribution<std::int32_t> distribution(low, high);
  for (std::int64_t i = 0; i < view.count(); ++i) set(view, i, distribution(random_));
  return view;
}

TensorView Workspace::numbers(const std::vector<std::int32_t>& values) {
  const TensorView view = zeros(DType::i32, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), view.as<std::int32_t>());
  return view;
}

TensorView Workspace::copy(const TensorView& view) {
  const TensorView result = zeros(view.dtype, view.shape);
  std::memcpy(result.data, view.data, static_cast<std::size_t>(view.bytes()));
  return result;
}

TensorView Workspace::widened(const TensorView& view) {
  if (view.dtype == DType::i32) return copy(view);
  const TensorView result = zeros(DType::f64, view.shape);
  for (std::int64_t i = 0; i < view.count(); ++i) set(result, i, get(view, i));
  return result;
}

namespace {

constexpr std::int64_t kGuard = 512;
constexpr std::byte kGuardByte{0xA5};

// The backend's copy of one operand, between two guards.
struct Resident {
  Operand host;
  std::byte* memory = nullptr;
  std::vector<std::byte> sent;  // guards included
};

Resident send(Harness& harness, const Operand& operand) {
  const std::int64_t bytes = operand.view.bytes();
  Resident resident{operand, harness.allocate(bytes + 2 * kGuard), {}};
  resident.sent.assign(static_cast<std::size_t>(bytes + 2 * kGuard), kGuardByte);
  if (operand.read) {
    std::memcpy(resident.sent.data() + kGuard, operand.view.data, static_cast<std::size_t>(bytes));
  } else {
    const TensorView poisoned{resident.sent.data() + kGuard, operand.view.dtype,
                              operand.view.shape};
    const double poison = poisoned.dtype == DType::i32  ? -12345
                          : poisoned.dtype == DType::u8 ? 165
                                                        : std::numeric_limits<double>::quiet_NaN();
    for (std::int64_t i = 0; i < poisoned.count(); ++i) set(poisoned, i, poison);
  }
  harness.upload(resident.memory, resident.sent.data(), bytes + 2 * kGuard);
  return resident;
}

void receive(Harness& harness, const Resident& resident) {
  std::vector<std::byte> got(resident.sent.size());
  harness.download(got.data(), resident.memory, static_cast<std::int64_t>(got.size()));
  harness.release(resident.memory);
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + kGuard, resident.sent.begin()))
      << "bytes before a tensor changed";
  EXPECT_TRUE(std::equal(got.end() - kGuard, got.end(), resident.sent.end() - kGuard))
      << "bytes behind a tensor changed";
  if (!resident.host.written) {
    EXPECT_TRUE(got == resident.sent) << "a tensor that is only read changed";
    return;
  }
  std::memcpy(resident.host.view.data, got.data() + kGuard, got.size() - 2 * kGuard);
}

}  // namespace

void run_on(Harness& harness, const Op& op) {
  std::vector<Resident> residents;
  for (const Operand& operand : operands_of(op)) residents.push_back(send(harness, operand));
  Op placed = op;
  remap(placed, [&](const TensorView& view) {
    for (const Resident& resident : residents) {
      if (resident.host.view.data == view.data) {
        return TensorView{resident.memory + kGuard, view.dtype, view.shape};
      }
    }
    return view;
  });
  std::visit([](const auto& concrete) { concrete.validate(); }, placed);
  harness.run(placed);
  for (const Resident& resident : residents) receive(harness, resident);
}

}  // namespace zl::test
