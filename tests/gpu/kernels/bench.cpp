#include "tests/gpu/kernels/bench.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <random>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/ops/elementwise.h"
#include "core/ops/op.h"

namespace zl::gpu {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw Error(ErrorCode::failed, std::string(what) + ": " + cudaGetErrorString(status));
  }
}

using Event = std::unique_ptr<CUevent_st, decltype(&cudaEventDestroy)>;

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return {event, cudaEventDestroy};
}

}  // namespace

GpuBench::GpuBench(double fill) : fill_(fill) {
  workspace_ = device_.reserve(MemorySpace::device, cuda::kWorkspace);
  ZL_CHECK(workspace_ != nullptr, "the GPU has room for one workspace");
  device_.lend_workspace(workspace_, cuda::kWorkspace);
}

GpuBench::~GpuBench() {
  clear();
  device_.lend_workspace(nullptr, 0);
  device_.release(MemorySpace::device, workspace_, cuda::kWorkspace);
}

TensorView Bench::empty(DType dtype, const Shape& shape) {
  const TensorView sized{nullptr, dtype, shape};
  std::byte* memory = device().reserve(MemorySpace::device, sized.bytes());
  if (memory == nullptr) {
    throw Error(ErrorCode::failed, "no room on the GPU for " + std::string(name_of(dtype)) +
                                       shape.text() + "; end other programs that use it");
  }
  slabs_.push_back({memory, sized.bytes()});
  return {memory, dtype, shape};
}

TensorView Bench::zeros(DType dtype, const Shape& shape) {
  const TensorView tensor = empty(dtype, shape);
  run(Fill{tensor.flat(), 0});
  return tensor;
}

TensorView Bench::normal(DType dtype, const Shape& shape, double std) {
  const TensorView tensor = empty(dtype, shape);
  const RngKey key{.seed = 17, .stream = static_cast<std::uint32_t>(slabs_.size())};
  run(RandomNormal{tensor.flat(), std, key, 0});
  return tensor;
}

TensorView Bench::tokens(std::int64_t count, std::int64_t below) {
  std::mt19937 random(static_cast<unsigned>(below));
  std::uniform_int_distribution<std::int32_t> pick(0, static_cast<std::int32_t>(below) - 1);
  std::vector<std::int32_t> host(static_cast<std::size_t>(count));
  std::generate(host.begin(), host.end(), [&] { return pick(random); });
  const TensorView tensor = empty(DType::i32, {count});
  device().copy(StreamId::compute, tensor.data, reinterpret_cast<const std::byte*>(host.data()),
                tensor.bytes(), nullptr);
  device().synchronize(StreamId::compute);
  return tensor;
}

void Bench::clear() {
  for (const Slab& slab : slabs_) device().release(MemorySpace::device, slab.memory, slab.bytes);
  slabs_.clear();
}

double GpuBench::timed(const std::function<void()>& enqueue, int launches) {
  const Event start = make_event(), stop = make_event();
  const auto mark = [this](const Event& event) {  // by the device: it may hold a product back
    const auto record = [&](cuda::Stream stream) {
      check(cudaEventRecord(event.get(), stream), "cudaEventRecord");
    };
    device_.enqueue(StreamId::compute, "mark", record, nullptr);
  };
  mark(start);
  for (int i = 0; i < launches; ++i) enqueue();
  mark(stop);
  device_.synchronize(StreamId::compute);
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start.get(), stop.get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3 / launches;
}

double GpuBench::seconds(const std::function<void()>& enqueue) {
  constexpr int kMostLaunches = 1000;
  timed(enqueue, 3);
  const double about = std::max(1e-7, timed(enqueue, 3));
  const int launches = static_cast<int>(std::clamp(fill_ / about, 1.0, double{kMostLaunches}));
  std::vector<double> repeats;
  for (int i = 0; i < 5; ++i) repeats.push_back(timed(enqueue, launches));
  std::nth_element(repeats.begin(), repeats.begin() + 2, repeats.end());
  return repeats[2];
}

double Bench::seconds(const Op& op) {
  std::visit([](const auto& concrete) { concrete.validate(); }, op);
  return seconds([&] { run(op); });
}

}  // namespace zl::gpu
