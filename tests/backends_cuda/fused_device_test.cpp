// Pairs of ops that the device may fuse give what the two ops give, on a GPU, in both modes; and
// nobody sees that a product was held back.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "backends/cuda/device.h"
#include "core/ops/activation.h"
#include "core/ops/matmul.h"

namespace zl::cuda {
namespace {

constexpr std::int64_t kRows = 96, kWidth = 128, kDepth = 64;
using Matrix = std::vector<double>;

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

class FusedDevice : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!availability().empty()) GTEST_SKIP() << availability();
    device_ = std::make_unique<Device>(0, 0, Device::OnFailure{}, GetParam());
    const std::int64_t bytes = kWorkspace + (std::int64_t{4} << 20);
    slab_ = device_->reserve(MemorySpace::device, bytes);
    ASSERT_NE(slab_, nullptr);
    device_->lend_workspace(slab_, kWorkspace);
    next_ = slab_ + kWorkspace;
  }
  void TearDown() override {
    if (slab_ != nullptr) device_->release(MemorySpace::device, slab_, 0);
  }

  // Normal values, rounded to the type as on the device.
  TensorView normal(const Shape& shape, Matrix& values, DType dtype = DType::bf16) {
    std::normal_distribution<float> draw;
    const TensorView view = room(shape, dtype);
    values.resize(static_cast<std::size_t>(view.count()));
    if (dtype == DType::f32) {
      auto& floats = floats_.emplace_back(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = floats[i] = draw(random_);
      upload(view, floats.data());
    } else {
      auto& halves = halves_.emplace_back(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        halves[i] = to_bfloat16(draw(random_));
        values[i] = to_float(halves[i]);
      }
      upload(view, halves.data());
    }
    return view;
  }
  TensorView room(const Shape& shape, DType dtype = DType::bf16) {
    const TensorView view{next_, dtype, shape};
    next_ += (view.bytes() + 255) / 256 * 256;
    return view;
  }
  void upload(const TensorView& view, const void* from) {
    device_->copy(StreamId::compute, view.data, static_cast<const std::byte*>(from), view.bytes(),
                  nullptr);
  }
  Matrix download(const TensorView& view) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(view.bytes()));
    device_->copy(StreamId::compute, bytes.data(), view.data, view.bytes(), nullptr);
    device_->synchronize(StreamId::compute);
    Matrix values(static_cast<std::size_t>(view.count()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = view.dtype == DType::f32
                      ? reinterpret_cast<const float*>(bytes.data())[i]
                      : to_float(reinterpret_cast<const bfloat16*>(bytes.data())[i]);
    }
    return values;
  }
  static void expect_near(const Matrix& got, const Matrix& want, double tolerance) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << i;
    }
  }

  std::unique_ptr<Device> device_;
  std::byte *slab_ = nullptr, *next_ = nullptr;
  std::mt19937 random_{1234};
  std::deque<std::vector<float>> floats_;  // sources of copies, until the test ends
  std::deque<std::vector<bfloat16>> halves_;
  Timing first_, second_;
};

TEST_P(FusedDevice, GeluAndItsInput) {
  Matrix x, w, b;
  Gemm gemm{normal({kRows, kDepth}, x),
            normal({kWidth, kDepth}, w),
            room({kRows, kWidth}),
            normal({kWidth}, b),
            false,
            true,
            false};
  const TensorView y = room({kRows, kWidth});
  Matrix sums(kRows * kWidth), activated(kRows * kWidth);
  for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
    const auto row = static_cast<std::size_t>(i / kWidth),
               column = static_cast<std::size_t>(i % kWidth);
    double sum = b[column];
    for (std::size_t k = 0; k < kDepth; ++k) sum += x[row * kDepth + k] * w[column * kDepth + k];
    sums[static_cast<std::size_t>(i)] = sum;
    activated[static_cast<std::size_t>(i)] = gelu(sum);
  }
  device_->run(StreamId::compute, gemm, &first_);
  device_->run(StreamId::compute, ActivationForward{ActivationKind::gelu_tanh, gemm.c, y},
               &second_);
  expect_near(download(gemm.c), sums, 0x1p-7);
  expect_near(download(y), activated, 0x1p-6);
  EXPECT_GT(first_.end_ns, first_.start_ns);
  EXPECT_GE(second_.start_ns, first_.end_ns);
}

TEST_P(FusedDevice, GeluGradientInPlace) {
  Matrix dout, w, before;
  const Gemm gemm{normal({kRows, kDepth}, dout),
                  normal({kDepth, kWidth}, w),
                  room({kRows, kWidth}),
                  {},
                  false,
                  false,
                  false};
  const TensorView x = normal({kRows, kWidth}, before);
  Matrix want(kRows * kWidth);
  for (std::size_t i = 0; i < want.size(); ++i) {
    for (std::size_t k = 0; k < kDepth; ++k) {
      want[i] += dout[i / kWidth * kDepth + k] * w[k * kWidth + i % kWidth];
    }
    want[i] *= gelu_slope(before[i]);
  }
  device_->run(StreamId::compute, gemm, nullptr);
  device_->run(StreamId::compute, ActivationBackward{ActivationKind::gelu_tanh, x, gemm.c, gemm.c},
               nullptr);
  expect_near(download(gemm.c), want, 0x1p-6);
  expect_near(download(x), before, 0);
}

TEST_P(FusedDevice, BiasGradientBesideTheWeights) {
  for (const bool accumulate : {false, true}) {
    Matrix dout, x, old;
    const Gemm gemm{normal({kRows, kWidth}, dout),
                    normal({kRows, kDepth}, x),
                    normal({kWidth, kDepth}, old, DType::f32),
                    {},
                    true,
                    false,
                    accumulate};
    const TensorView dbias = room({kWidth}, DType::f32);
    Matrix weights(kWidth * kDepth), bias(kWidth);
    for (std::size_t f = 0; f < kWidth; ++f) {
      for (std::size_t n = 0; n < kRows; ++n) {
        bias[f] += dout[n * kWidth + f];
        for (std::size_t c = 0; c < kDepth; ++c) {
          weights[f * kDepth + c] += dout[n * kWidth + f] * x[n * kDepth + c];
        }
      }
    }
    if (accumulate) {
      for (std::size_t i = 0; i < old.size(); ++i) weights[i] += old[i];
    }
    device_->run(StreamId::compute, gemm, nullptr);
    device_->run(StreamId::compute, BiasBackward{gemm.a, dbias, false}, nullptr);
    expect_near(download(gemm.c), weights, 1e-5);
    expect_near(download(dbias), bias, 1e-5);
  }
}

// An event after a product stands for it, whatever comes later.
TEST_P(FusedDevice, AnEventCoversTheProductBeforeIt) {
  Matrix x, w;
  const Gemm gemm{normal({kRows, kDepth}, x),
                  normal({kWidth, kDepth}, w),
                  room({kRows, kWidth}),
                  {},
                  false,
                  true,
                  false};
  Matrix want(kRows * kWidth);
  for (std::size_t i = 0; i < want.size(); ++i) {
    for (std::size_t k = 0; k < kDepth; ++k) {
      want[i] += x[i / kWidth * kDepth + k] * w[i % kWidth * kDepth + k];
    }
  }
  const TensorView copied = room({kRows, kWidth});
  device_->run(StreamId::compute, gemm, nullptr);
  device_->wait(StreamId::copy_out, device_->record(StreamId::compute));
  device_->copy(StreamId::copy_out, copied.data, gemm.c.data, copied.bytes(), nullptr);
  device_->synchronize(StreamId::copy_out);
  expect_near(download(copied), want, 0x1p-7);
}

INSTANTIATE_TEST_SUITE_P(Modes, FusedDevice, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "deterministic" : "fastest"; });

}  // namespace
}  // namespace zl::cuda
