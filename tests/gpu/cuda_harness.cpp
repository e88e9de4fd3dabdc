// The CUDA backend under the conformance suite: every op twice on GPU 0, so that a result that
// changes from run to run shows. The scratch memory of ops is poisoned before each, and every other
// trial gets tensors that are 8-byte but not 16-byte aligned.
#include <cuda_runtime.h>

#include <string>

#include "backends/cuda/device.h"
#include "tests/conformance/harness.h"

namespace zl::test {
namespace {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw Error(ErrorCode::failed, std::string(what) + ": " + cudaGetErrorString(status));
  }
}

struct Lent {
  cuda::Device device{0, 0};
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
  CudaHarness(std::string name, std::int64_t shift) : name_(std::move(name)), shift_(shift) {}

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
    Timing timing;
    l.device.run(StreamId::compute, op, &timing);
    l.device.synchronize(StreamId::compute);
  }

 private:
  std::string name_;
  std::int64_t shift_;
};

}  // namespace

std::vector<std::unique_ptr<Harness>> make_harnesses() {
  static int trial = 0;
  const std::int64_t shift = ++trial % 2 == 0 ? 8 : 0;
  lent();
  std::vector<std::unique_ptr<Harness>> all;
  all.push_back(std::make_unique<CudaHarness>("cuda", shift));
  all.push_back(std::make_unique<CudaHarness>("cuda once more", shift));
  return all;
}

}  // namespace zl::test
