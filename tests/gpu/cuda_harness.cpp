// The CUDA backend under the conformance suite: every op twice on GPU 0, so that a result that
// changes from run to run shows. Every other trial gets tensors that are 8-byte but not 16-byte
// aligned.
#include "tests/gpu/cuda_harness.h"

#include <cuda_runtime.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace zl::test {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw Error(ErrorCode::failed, std::string(what) + ": " + cudaGetErrorString(status));
  }
}

// Attention on zerolab's kernels: cuDNN's have tests of their own.
struct OwnKernels {
  OwnKernels() { setenv("ZEROLAB_ATTENTION", "zerolab", 1); }
  ~OwnKernels() { unsetenv("ZEROLAB_ATTENTION"); }
};

struct Lent {
  cuda::Device device{(OwnKernels(), 0), 0};
  std::byte* workspace = nullptr;
  Lent() {
    workspace = device.reserve(MemorySpace::device, cuda::kWorkspace);
    ZL_CHECK(workspace != nullptr, "the GPU has room for one workspace");
    device.lend_workspace(workspace, cuda::kWorkspace);
  }
};

// Never destroyed: CUDA may be gone when static objects die.
Lent& lent() {
  static auto* all = new Lent;
  return *all;
}

class CudaHarness : public Harness {
 public:
  CudaHarness(std::string name, std::int64_t shift, RunOp run)
      : name_(std::move(name)), shift_(shift), run_(std::move(run)) {}

  std::string name() const override {
    return name_ + (shift_ == 0 ? "" : ", tensors not 16-byte aligned");
  }
  std::byte* allocate(std::int64_t bytes) override {
    void* memory = nullptr;
    check(cudaMalloc(&memory, static_cast<std::size_t>(bytes + shift_)), "cudaMalloc");
    return static_cast<std::byte*>(memory) + shift_;
  }
  void release(std::byte* memory) override { check(cudaFree(memory - shift_), "cudaFree"); }
  void upload(std::byte* destination, const std::byte* source, std::int64_t bytes) override {
    check(cudaMemcpy(destination, source, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice),
          "upload");
  }
  void download(std::byte* destination, const std::byte* source, std::int64_t bytes) override {
    check(cudaMemcpy(destination, source, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost),
          "download");
  }
  void run(const Op& op) override {
    Lent& l = lent();
    check(cudaMemset(l.workspace, 0xFF, static_cast<std::size_t>(cuda::kWorkspace)), "poison");
    check(cudaDeviceSynchronize(), "poison");
    run_(op);
    l.device.synchronize(StreamId::compute);
  }

 private:
  std::string name_;
  std::int64_t shift_;
  RunOp run_;
};

}  // namespace

cuda::Device& lent_device() { return lent().device; }

std::unique_ptr<Harness> make_cuda_harness(std::string name, std::int64_t shift, RunOp run) {
  lent();
  return std::make_unique<CudaHarness>(std::move(name), shift, std::move(run));
}

std::vector<std::unique_ptr<Harness>> make_harnesses() {
  static int trial = 0;
  const std::int64_t shift = ++trial % 2 == 0 ? 8 : 0;
  const auto run = [](const Op& op) {
    Timing timing;
    lent_device().run(StreamId::compute, op, &timing);
  };
  std::vector<std::unique_ptr<Harness>> all;
  all.push_back(make_cuda_harness("cuda", shift, run));
  all.push_back(make_cuda_harness("cuda once more", shift, run));
  return all;
}

}  // namespace zl::test
