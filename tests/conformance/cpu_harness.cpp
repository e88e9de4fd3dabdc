// The CPU backend under the conformance suite, with one, two and three threads.
#include <cstdlib>
#include <cstring>

#include "backends/cpu/ops/gemm_onednn.h"
#include "backends/cpu/ops/gemm_rows.h"
#include "backends/cpu/ops/ops.h"
#include "tests/conformance/harness.h"

namespace zl::test {
namespace {

class CpuHarness : public Harness {
 public:
  explicit CpuHarness(int threads) { context_.threads = threads; }

  std::string name() const override {
    return "cpu, " + std::to_string(context_.threads) + " threads";
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
    std::visit([this](const auto& o) { cpu::execute(o, context_); }, op);
  }
  // oneDNN divides a product by the number of threads.
  bool shares_bits(const Op& op) const override {
    const auto* product = std::get_if<Gemm>(&op);
    return product == nullptr || cpu::is_of_few_rows(*product) || !cpu::onednn_prefers(*product);
  }

 private:
  cpu::ExecContext context_;
};

}  // namespace

std::vector<std::unique_ptr<Harness>> make_harnesses() {
  std::vector<std::unique_ptr<Harness>> all;
  for (int threads = 1; threads <= 3; ++threads) {
    all.push_back(std::make_unique<CpuHarness>(threads));
  }
  return all;
}

}  // namespace zl::test
