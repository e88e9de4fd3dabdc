// The shim itself: kernels with a known fault must be caught, and its tensor-core words must agree
// with plain matrix products.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "backends/cuda/kernel/convert.h"
#include "backends/cuda/kernel/launch.h"
#include "backends/cuda/kernel/reduce.h"

namespace zl::cuda {
namespace {

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// out[i] = the value of the thread to the right, through shared memory.
template <bool kBarrier>
__global__ void rotate(float* out) {
  float* values = dynamic_shared<float>();
  values[threadIdx.x] = static_cast<float>(threadIdx.x);
  if constexpr (kBarrier) __syncthreads();
  out[threadIdx.x] = values[(threadIdx.x + 1) % blockDim.x];
}

std::vector<float> rotated(void (*kernel)(float*), std::uint64_t order) {
  std::vector<float> out(64, -1);
  host::set_fiber_order(order);
  launch(nullptr, {1, 1, 64, 64 * sizeof(float)}, kernel, out.data());
  return out;
}

TEST(Shim, BarriersOrderSharedMemory) {
  for (std::uint64_t order = 0; order < 5; ++order) {
    const std::vector<float> out = rotated(rotate<true>, order);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], static_cast<float>((i + 1) % 64));
  }
}

TEST(Shim, AMissingBarrierShowsAsUnwrittenSharedMemory) {
  int unwritten = 0;
  for (const float value : rotated(rotate<false>, 1)) unwritten += std::isnan(value);
  EXPECT_GT(unwritten, 0);
}

__global__ void leave_early(int threads) {
  if (static_cast<int>(threadIdx.x) < threads) return;
  __syncthreads();
}

TEST(Shim, ThreadsThatMissABarrierAreNamed) {
  const std::string text = message_of([] { launch(nullptr, {2, 1, 64, 0}, leave_early, 3); });
  EXPECT_NE(text.find("thread 0 has ended"), std::string::npos) << text;
  EXPECT_NE(text.find("at __syncthreads"), std::string::npos) << text;
}

__global__ void odd_lanes_only(float* out) {
  if (threadIdx.x % 2 == 1) out[threadIdx.x] = shuffle_xor(1.0f, 2);
}

TEST(Shim, LanesThatMissAnExchangeAreNamed) {
  std::vector<float> out(32);
  const std::string text = message_of([&] {
    launch(nullptr, {1, 1, 32, 0}, odd_lanes_only, out.data());
  });
  EXPECT_NE(text.find("in a warp exchange"), std::string::npos) << text;
}

__global__ void load_pack(const float* x, float* out) {
  const uint4 raw = load_16(x + threadIdx.x);
  out[threadIdx.x] = __uint_as_float(raw.x);
}

TEST(Shim, MisalignedPacksAreNamed) {
  alignas(16) std::array<float, 64> x{};
  std::array<float, 32> out{};
  const std::string text = message_of([&] {
    launch(nullptr, {1, 1, 32, 0}, load_pack, x.data(), out.data());
  });
  EXPECT_NE(text.find("not a multiple of 16"), std::string::npos) << text;
}

// Copies a tile and adds it up, waiting for its copies or not.
template <int kMode>
__global__ void copy_tile(const float* x, float* out) {
  float* tile = dynamic_shared<float>();
  async_copy_16(tile + threadIdx.x * 4, x + threadIdx.x * 4, threadIdx.x < 16);
  async_commit();
  if constexpr (kMode == 1) async_wait<0>();
  __syncthreads();
  const unsigned other = (threadIdx.x + 1) % blockDim.x;
  out[threadIdx.x] = tile[other * 4];
  if constexpr (kMode == 0) async_wait<0>();
}

TEST(Shim, AsynchronousCopiesArriveWhenWaitedFor) {
  alignas(16) std::array<float, 128> x{};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  std::array<float, 32> out{};
  launch(nullptr, {1, 1, 32, 128 * 4}, copy_tile<1>, x.data(), out.data());
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned other = (i + 1) % 32;
    EXPECT_EQ(out[i], other < 16 ? static_cast<float>(other * 4) : 0.0f);
  }
  launch(nullptr, {1, 1, 32, 128 * 4}, copy_tile<0>, x.data(), out.data());
  int early = 0;  // read before the thread that copied has waited
  for (const float value : out) early += std::isnan(value);
  EXPECT_GT(early, 0);
  const std::string text = message_of([&] {
    launch(nullptr, {1, 1, 32, 128 * 4}, copy_tile<2>, x.data(), out.data());
  });
  EXPECT_NE(text.find("never waited for"), std::string::npos) << text;
}

__global__ void sum_block(const float* x, float* out) {
  __shared__ float scratch[32];
  out[threadIdx.x] = block_reduce(x[threadIdx.x], scratch, AddOf{});
}

TEST(Shim, BlockReduceGivesEveryThreadTheSum) {
  std::array<float, 128> x, out{};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  launch(nullptr, {1, 1, 128, 0}, sum_block, x.data(), out.data());
  for (const float value : out) EXPECT_EQ(value, 127.0f * 64);
}

// c[16x8] = a[16x16] b[16x8] from row-major shared memory; b's fragments by transposing loads.
template <class T>
__global__ void multiply(const T* a, const T* b, float* c) {
  T* shared = dynamic_shared<T>();
  T* shared_b = shared + 16 * 16;
  for (unsigned i = threadIdx.x; i < 16 * 16; i += 32) shared[i] = a[i];
  for (unsigned i = threadIdx.x; i < 16 * 16; i += 32) shared_b[i] = b[i];
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x);
  std::uint32_t left[4], right[4];
  ldmatrix_x4(left, shared + lane % 16 * 16 + lane / 16 * 8);
  ldmatrix_x4_transposed(right, shared_b + lane % 16 * 16 + lane / 16 * 8);
  for (int half = 0; half < 2; ++half) {
    float sum[4] = {};
    mma_16x8x16<T>(sum, left, right[2 * half], right[2 * half + 1]);
    for (int i = 0; i < 4; ++i) {
      c[(lane / 4 + i / 2 * 8) * 16 + half * 8 + lane % 4 * 2 + i % 2] = sum[i];
    }
  }
}

template <class T>
void expect_product() {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::array<T, 256> a, b;
  for (T& value : a) value = from_float<T>(normal(random));
  for (T& value : b) value = from_float<T>(normal(random));
  std::array<float, 256> c{};
  launch(nullptr, {1, 1, 32, 1024}, multiply<T>, a.data(), b.data(), c.data());
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 16; ++column) {
      double sum = 0;
      for (std::size_t k = 0; k < 16; ++k) {
        sum += double{to_float(a[row * 16 + k])} * double{to_float(b[k * 16 + column])};
      }
      EXPECT_NEAR(c[row * 16 + column], sum, 1e-5) << row << ", " << column;
    }
  }
}

TEST(Shim, TensorCoreWordsMultiplyMatrices) {
  expect_product<bfloat16>();
  expect_product<float16>();
}

}  // namespace
}  // namespace zl::cuda
