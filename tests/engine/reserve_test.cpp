// Reserved bytes as the device is asked for them, counted beside the pools' own books.
#include <map>

#include "tests/engine/comparisons.h"
#include "tests/engine/forwarding.h"

namespace zl::test {
namespace {

// Adds up what is reserved.
class CountingDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  std::byte* reserve(MemorySpace space, std::int64_t bytes) override {
    std::byte* slab = ForwardingDevice::reserve(space, bytes);
    if (slab == nullptr) return slab;
    slabs_[slab] = bytes;
    held_[space] += bytes;
    most_[space] = std::max(most_[space], held_[space]);
    return slab;
  }
  void release(MemorySpace space, std::byte* slab, std::int64_t bytes) override {
    EXPECT_EQ(slabs_.at(slab), bytes) << "what is given back is what was taken";
    slabs_.erase(slab);
    held_[space] -= bytes;
    ForwardingDevice::release(space, slab, bytes);
  }

  std::int64_t most(MemorySpace space) { return most_[space]; }
  std::size_t slabs() const { return slabs_.size(); }

 private:
  std::map<std::byte*, std::int64_t> slabs_;
  std::map<MemorySpace, std::int64_t> held_, most_;
};

void expect_counted(const ModelConfig& model, const Strategy& s, ProgramOptions options) {
  const TokenSource data = learnable_tokens(model.vocab);
  options.sequence_length = model.max_sequence;
  options.make_storage = [](const Strategy& one, int rank) {
    return cpu::make_file_storage(one.offload.nvme_path, rank, one.offload.aio);
  };
  cpu::make_world({2, 1})->run([&](RankHandle handle) {
    CountingDevice counting(handle.device);
    const RunResult r = run_rank({counting, handle.communicator}, model, s, data, options).result;
    const std::int64_t host =
        counting.most(MemorySpace::host) + counting.most(MemorySpace::pinned_host);
    EXPECT_EQ(r.reserved_device, counting.most(MemorySpace::device)) << s.name;
    EXPECT_EQ(r.reserved_host, host) << s.name;
    EXPECT_LE(r.peak_device.total(), counting.most(MemorySpace::device)) << s.name;
    EXPECT_LE(r.peak_host.total(), host) << s.name;
    EXPECT_EQ(counting.slabs(), 0u) << s.name << ": slabs are given back";
  });
}

TEST(Reserved, IsWhatTheDeviceWasAskedFor) {
  std::vector<Strategy> all = variants(DType::bf16);
  const std::vector<Strategy> offloads = offload_variants(DType::bf16);
  for (std::size_t i = 0; i < offloads.size(); i += 4) all.push_back(offloads[i]);
  for (const Strategy& s : all) expect_counted(tiny_gpt2(), s, steps(2));
}

// Several slabs, some larger than the usual.
TEST(Reserved, OfManySlabs) {
  ModelConfig model = tiny_gpt2();
  model.layers = 2;
  model.hidden = 512;
  model.head_size = 128;
  model.max_sequence = 8;
  model.ffn = 0;
  model.complete();
  for (int stage = 0; stage <= 3; ++stage) {
    Strategy s = strategy(stage);
    expect_counted(model, s, steps(1));
    if (stage == 0) continue;
    s.offload.optimizer = Tier::cpu;
    s.name += " optimizer cpu";
    expect_counted(model, s, steps(1));
  }
}

}  // namespace
}  // namespace zl::test
