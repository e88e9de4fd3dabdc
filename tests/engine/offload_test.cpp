// Offload: the same bits as on the device, the same books on the recording device, and the bytes
// that ZeRO-Offload (Ren et al. 2021) moves.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>

#include "core/offload/placement.h"
#include "tests/engine/comparisons.h"
#include "tests/storage/faulty_engine.h"
#include "tests/temp_folder.h"

namespace zl::test {
namespace {

std::string label(const Strategy& s) { return s.name + (s.zero.overlap_comm ? " overlap" : ""); }

class Offload : public testing::TestWithParam<DType> {};

TEST_P(Offload, GivesTheSameBitsAsTheDevice) {
  for (const ModelConfig& model : {tiny_gpt2(), tiny_llama()}) {
    if (model.family == "llama" && GetParam() != DType::bf16) continue;
    const Finished reference = run_cpu(3, model, strategy(0, GetParam()), steps(4));
    for (const Strategy& s : offload_variants(GetParam())) {
      expect_same_bits(reference, run_cpu(3, model, s, steps(4)), model.name + " " + label(s));
    }
  }
}

TEST_P(Offload, BooksAreEqualOnTheRecordingDevice) {
  for (Strategy s : offload_variants(GetParam())) {
    for (const int accumulation : {1, 3}) {
      s.gradient_accumulation = accumulation;
      expect_twins(run_cpu(2, tiny_gpt2(), s, steps(3)).result,
                   run_sim(2, tiny_gpt2(), s, steps(3)).result, label(s));
    }
  }
}

// Without clipping the update of a group waits for the gradients of no other.
TEST_P(Offload, HasNoHazard) {
  for (Strategy s : offload_variants(GetParam())) {
    for (const double clipping : {1.0, 0.0}) {
      s.gradient_accumulation = 2;
      s.gradient_clipping = clipping;
      ProgramOptions options = steps(3);
      options.keep_trace = options.record_accesses = true;
      const Finished twin = run_sim(4, tiny_gpt2(), s, options);
      const auto hazards = find_hazards(twin.trace, twin.accesses);
      EXPECT_TRUE(hazards.empty()) << label(s) << ", clipping " << clipping << ": "
                                   << (hazards.empty() ? "" : hazards.front());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Offload, testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& each) { return name_of(each.param); });

TEST(OffloadAccumulation, GivesTheSameBitsAsTheDevice) {
  for (int stage = 1; stage <= 3; ++stage) {
    Strategy s = strategy(stage, DType::bf16);
    s.gradient_accumulation = 3;
    s.zero.overlap_comm = true;
    const Finished reference = run_cpu(2, tiny_gpt2(), s, steps(4));
    s.offload.optimizer = Tier::cpu;
    expect_same_bits(reference, run_cpu(2, tiny_gpt2(), s, steps(4)), s.name);
  }
}

std::int64_t moved(const RunResult& result, const std::string& link) {
  for (const CollectiveTotals& each : result.communication) {
    if (each.group == "tiers" && each.link == link) return each.bytes;
  }
  return 0;
}

// ZeRO-Offload (Ren et al. 2021): per rank and step fp32 gradients down and 16-bit weights up,
// Psi/N of each, beside the scalars of the norm; on the host 12 Psi/N of state, 4 of gradients and
// 2 of weights on their way.
TEST(OffloadBooks, FollowTheClosedForms) {
  const ModelConfig model = tiny_gpt2();
  const int ranks = 4;
  const std::int64_t shard = Partition(ParameterTable(model).counts(), ranks, 0).shard_elements();
  for (int stage = 1; stage <= 3; ++stage) {
    Strategy s = strategy(stage, DType::bf16);
    s.offload.optimizer = Tier::cpu;
    const RunResult two = run_sim(ranks, model, s, steps(2)).result;
    const RunResult five = run_sim(ranks, model, s, steps(5)).result;
    const auto per_step = [&](const char* link) {
      return (moved(five, link) - moved(two, link)) / 3;
    };
    EXPECT_EQ(per_step("device_to_host"), 4 * shard + 4) << stage;
    EXPECT_EQ(per_step("host_to_device"), 2 * shard + 4 + 16) << stage;
    const auto host = [&](MemoryTag tag) {
      return five.peak_host.tag[static_cast<std::size_t>(tag)];
    };
    EXPECT_EQ(host(MemoryTag::optimizer), 12 * shard) << stage;
    EXPECT_EQ(host(MemoryTag::gradient), 4 * shard) << stage;
    EXPECT_EQ(host(MemoryTag::staging), 2 * shard + 4 + 16) << stage;
    const auto device = [&](MemoryTag tag) {
      return five.peak_device.tag[static_cast<std::size_t>(tag)];
    };
    EXPECT_EQ(device(MemoryTag::optimizer), 0) << stage;
    EXPECT_EQ(device(MemoryTag::gradient), stage == 1 ? 4 * ranks * shard : 0) << stage;
  }
}

// Waits of the host's updates for files in the first step, when every buffer is free at first.
int waits_for_files(const Strategy& s) {
  const Trace trace = run_sim(2, tiny_gpt2(), s, steps(2)).trace;
  std::map<std::int64_t, bool> of_files;
  int waits = 0;
  for (const TraceEvent& event : trace.events()) {
    const auto stream = static_cast<StreamId>(event.stream);
    if (event.type == EventType::record) of_files[event.id] = stream == StreamId::file_out;
    if (event.type != EventType::wait || stream != StreamId::host) continue;
    if (event.scope.step == 1 && of_files.at(event.id)) ++waits;
  }
  return waits;
}

TEST(WeightsInFiles, UpdatesWaitForWritesOnceTheBuffersAreTaken) {
  Strategy s = strategy(3);
  s.offload.optimizer = Tier::cpu;
  s.offload.parameters = Tier::nvme;
  s.offload.max_in_cpu = 0;
  s.offload.nvme_path = testing::TempDir();
  s.offload.aio.block_size = 4096;
  s.offload.sub_group_size = 5000;
  s.offload.parameter_buffer_count = 1;
  const int groups = waits_for_files(s) + 1;
  ASSERT_GT(groups, 4);
  for (const int buffers : {2, 3, groups, groups + 5}) {
    s.offload.parameter_buffer_count = buffers;
    EXPECT_EQ(waits_for_files(s), std::max(0, groups - buffers)) << buffers << " buffers";
  }
}

// Delayed parameter update: theta(i+1) = theta(i) + U(g(i-1)). The first delayed step trains on the
// weights it started with, so its loss is that of the step before on another batch; with the delay
// starting after the last step nothing changes.
TEST(DelayedUpdate, IsOneStepStale) {
  Strategy on_device = strategy(2, DType::bf16);
  on_device.optimizer.lr = 3e-3;
  Strategy s = on_device;
  s.offload.optimizer = Tier::cpu;
  s.zero.overlap_comm = true;
  const Finished normal = run_cpu(2, tiny_gpt2(), s, steps(6));
  s.offload.delayed_update_after = 6;
  expect_same_bits(normal, run_cpu(2, tiny_gpt2(), s, steps(6)), "delayed after the last step");
  s.offload.delayed_update_after = 2;
  const Finished delayed = run_cpu(2, tiny_gpt2(), s, steps(6));
  for (const std::size_t same : {0, 1, 2})
    EXPECT_EQ(delayed.result.loss[same], normal.result.loss[same]);
  EXPECT_NE(delayed.result.loss[3], normal.result.loss[3])
      << "trained on the weights of a step before";
  // Steps 1 to 3 are all applied when the run ends after 3: what the delay changes is when, not
  // what.
  const Finished normal3 = run_cpu(2, tiny_gpt2(), on_device, steps(3));
  const Finished delayed3 = run_cpu(2, tiny_gpt2(), s, steps(3));
  expect_same_bits(normal3, delayed3, "three steps");
  expect_learned(delayed.result.loss, 0.9);
}

TEST(DelayedUpdate, HasTwinsAndNoHazard) {
  for (const bool overlap : {false, true}) {
    Strategy s = strategy(2, DType::bf16);
    s.offload.optimizer = Tier::cpu;
    s.offload.delayed_update_after = 1;
    s.zero.overlap_comm = overlap;
    s.gradient_accumulation = 2;
    expect_twins(run_cpu(2, tiny_gpt2(), s, steps(4)).result,
                 run_sim(2, tiny_gpt2(), s, steps(4)).result, "delayed");
    ProgramOptions options = steps(4);
    options.keep_trace = options.record_accesses = true;
    const Finished twin = run_sim(4, tiny_gpt2(), s, options);
    const auto hazards = find_hazards(twin.trace, twin.accesses);
    EXPECT_TRUE(hazards.empty()) << (hazards.empty() ? "" : hazards.front());
  }
}

// Fails the n-th read, then the n-th write, of a short run, for every n: an error that names the
// file, never a wrong loss, and nothing left in the folder.
TEST(OffloadFaults, EveryFailedRequestEndsTheRunByName) {
  namespace fs = std::filesystem;
  const test::TempFolder temporary;
  const std::string folder = temporary.string();
  ModelConfig model = tiny_llama();
  model.layers = 1;
  model.hidden = 16;
  model.ffn = 32;
  model.max_sequence = 8;
  Strategy s = strategy(3, DType::bf16);
  s.zero.overlap_comm = true;
  s.offload.optimizer = s.offload.parameters = Tier::nvme;
  s.offload.max_in_cpu = 0;
  s.offload.pipeline_read = s.offload.pipeline_write = true;
  s.offload.sub_group_size = 1500;
  s.offload.nvme_path = folder;
  const auto run_with = [&](std::shared_ptr<IoCount> reads, std::shared_ptr<IoCount> writes) {
    ProgramOptions options = steps(1);
    options.sequence_length = model.max_sequence;
    options.make_storage = [&](const Strategy& each, int rank) {
      if (rank == 1) return cpu::make_file_storage(each.offload.nvme_path, rank, each.offload.aio);
      return cpu::make_file_storage(each.offload.nvme_path, rank,
                                    std::make_unique<FaultyEngine>(reads),
                                    std::make_unique<FaultyEngine>(writes));
    };
    return run(*cpu::make_world({2, 1}), model, s, options);
  };
  const auto reads = std::make_shared<IoCount>(), writes = std::make_shared<IoCount>();
  EXPECT_EQ(run_with(reads, writes).result.steps, 1);
  const std::int64_t requests[] = {reads->requests, writes->requests};
  ASSERT_GT(requests[0], 20);
  ASSERT_GT(requests[1], 20);
  for (const int direction : {0, 1}) {
    for (std::int64_t n = 0; n < requests[direction]; ++n) {
      const auto bad = std::make_shared<IoCount>(), good = std::make_shared<IoCount>();
      bad->fails_at = n;
      bad->code = direction == 0 ? EIO : ENOSPC;
      std::string message;
      try {
        run_with(direction == 0 ? bad : good, direction == 0 ? good : bad);
      } catch (const Error& error) {
        message = error.what();
      }
      EXPECT_NE(message.find(folder), std::string::npos)
          << direction << " " << n << ": " << message;
      EXPECT_NE(message.find(direction == 0 ? "cannot read" : "cannot write"), std::string::npos)
          << message;
      EXPECT_TRUE(fs::is_empty(folder)) << direction << " " << n;
    }
  }
}

TEST(OffloadConfig, RefusesWhatCannotWork) {
  const auto message = [](const Strategy& s) -> std::string {
    try {
      check_offload(s);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  Strategy s = strategy(0);
  s.offload.optimizer = Tier::cpu;
  EXPECT_NE(message(s).find("offload_optimizer.device: needs stage 1, 2 or 3, not 0"),
            std::string::npos);
  s.zero.stage = 2;
  EXPECT_EQ(message(s), "");
  s.offload.parameters = Tier::cpu;
  EXPECT_NE(message(s).find("offload_param.device: needs stage 3, not 2"), std::string::npos);
  s.zero.stage = 3;
  s.offload.optimizer = Tier::device;
  EXPECT_NE(message(s).find("set offload_optimizer.device"), std::string::npos);
  s.offload.optimizer = Tier::nvme;
  EXPECT_NE(message(s).find("nvme_path"), std::string::npos);
  s.offload.nvme_path = "/somewhere";
  EXPECT_EQ(message(s), "");
  s.offload.delayed_update_after = 1;
  EXPECT_NE(message(s).find("delayed_param_update"), std::string::npos);
  s.offload.delayed_update_after = -1;
  s.optimizer.kind = OptimizerKind::lamb;
  EXPECT_NE(message(s).find("LAMB"), std::string::npos);
}

}  // namespace
}  // namespace zl::test
