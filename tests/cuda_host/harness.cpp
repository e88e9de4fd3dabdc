// The CUDA kernels under the conformance suite, on the CPU, with fibers in three orders: results
// must not depend on which thread of a block runs first. Products are cuBLASLt's on a GPU; here the
// CPU backend's stand in for them.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backends/cpu/ops/ops.h"
#include "backends/cuda/ops/ops.h"
#include "core/ops/op.h"
#include "tests/conformance/harness.h"

namespace zl::cuda {

void execute(const Gemm& op, const ExecContext&) { cpu::execute(op, cpu::ExecContext{1}); }

void host::start(Stream, std::function<void()> grid) { grid(); }

}  // namespace zl::cuda

namespace zl::test {
namespace {

constexpr std::size_t kWorkspace = 8 << 20, kPoisoned = 1 << 20;

class CudaHostHarness : public Harness {
 public:
  explicit CudaHostHarness(std::uint64_t order) : order_(order), workspace_(kWorkspace / 16) {}

  std::string name() const override {
    return "cuda kernels, fiber order " + std::to_string(order_);
  }
  std::byte* allocate(std::int64_t bytes) override {
    const auto rounded = static_cast<std::size_t>((bytes + 511) / 512 * 512);
    return static_cast<std::byte*>(std::aligned_alloc(512, rounded));
  }
  void release(std::byte* memory) override { std::free(memory); }
  void upload(std::byte* destination, const std::byte* source, std::int64_t bytes) override {
    std::memcpy(destination, source, static_cast<std::size_t>(bytes));
  }
  void download(std::byte* destination, const std::byte* source, std::int64_t bytes) override {
    std::memcpy(destination, source, static_cast<std::size_t>(bytes));
  }
  void run(const Op& op) override {
    std::memset(workspace_.data(), 0xff, kPoisoned);
    cuda::host::set_fiber_order(order_);
    cuda::ExecContext context;
    context.workspace = reinterpret_cast<std::byte*>(workspace_.data());
    context.workspace_bytes = kWorkspace;
    context.multiprocessors = 3;  // few, so that grids wrap around
    std::visit([&](const auto& o) { cuda::execute(o, context); }, op);
  }

 private:
  std::uint64_t order_;
  std::vector<uint4> workspace_;
};

}  // namespace

std::vector<std::unique_ptr<Harness>> make_harnesses() {
  std::vector<std::unique_ptr<Harness>> all;
  for (std::uint64_t order = 1; order <= 3; ++order) {
    all.push_back(std::make_unique<CudaHostHarness>(order));
  }
  return all;
}

}  // namespace zl::test
