// Part h: offload on a GPU: how fast its copies cross the bus, and what the host's update hides
// behind.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "backends/cuda/device.h"
#include "backends/cuda/world.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/data/token_source.h"
#include "core/train/rank_program.h"
#include "scenarios/files/model_file.h"
#include "scenarios/run/cuda_backend.h"
#include "scenarios/run/runner.h"
#include "simulator/calibration.h"
#include "tests/engine/intervals.h"
#include "tests/gpu/parts.h"

namespace zl::gpu {
namespace {

constexpr double kGoalOfBus = 0.9;  // of the bus, for copies of at least kLarge bytes
constexpr std::int64_t kLarge = 1 << 20;
constexpr int kOffloadSteps = 5, kFirst = 3,
              kLast = 4;  // that count; nothing hides the last one's update

struct CopyShape {
  const char* model;
  std::int64_t sequence, micro_batch, block, large;
};
constexpr CopyShape kShape{"gpt2-124m", 1024, 8, std::int64_t{256} << 20, kLarge};
constexpr CopyShape kTiny{"gpt2-tiny", 16, 2, 4096, 1};

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(ErrorCode::failed, std::string(what) + ": " + cudaGetErrorString(status));
}

// Bytes a second of plain copies of one block between pinned and device memory: median of five.
double bus_rate(StreamId stream, std::int64_t bytes) {
  cuda::Device device(0, 0);
  std::byte* host = device.reserve(MemorySpace::pinned_host, bytes);
  std::byte* card = device.reserve(MemorySpace::device, bytes);
  if (host == nullptr || card == nullptr) {
    throw Error(ErrorCode::failed, "no room for a block of " + std::to_string(bytes) + " bytes");
  }
  const bool in = stream == StreamId::copy_in;
  std::vector<double> rates;
  for (int i = 0; i < 6; ++i) {
    Timing timing;
    device.enqueue(
        stream, "copy",
        [&](cuda::Stream raw) {
          check(cudaMemcpyAsync(in ? card : host, in ? host : card, static_cast<std::size_t>(bytes),
                                in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, raw),
                "cudaMemcpyAsync");
        },
        &timing);
    device.synchronize(stream);
    const auto nanoseconds = static_cast<double>(timing.end_ns - timing.start_ns);
    if (i > 0) rates.push_back(static_cast<double>(bytes) / nanoseconds * 1e9);
  }
  device.release(MemorySpace::pinned_host, host, bytes);
  device.release(MemorySpace::device, card, bytes);
  std::nth_element(rates.begin(), rates.begin() + 2, rates.end());
  return rates[2];
}

Strategy offloaded(const CopyShape& shape, bool delayed) {
  Strategy s;
  s.name = delayed ? "zero-2, delayed update on the host" : "zero-2, update on the host";
  s.zero.stage = 2;
  s.zero.overlap_comm = true;
  s.precision.compute_dtype = DType::bf16;
  s.micro_batch = shape.micro_batch;
  s.zero.reduce_bucket_size = 20'000'000;
  s.offload.optimizer = Tier::cpu;
  s.offload.sub_group_size = 20'000'000;
  s.offload.delayed_update_after = delayed ? 1 : -1;
  return s;
}

RankOutcome train(const CopyShape& shape, const Strategy& strategy) {
  const ModelConfig model = load_model(shape.model);
  const TokenSource data = TokenSource::synthetic(model.vocab, 7);
  ProgramOptions options;
  options.steps = kOffloadSteps;
  options.sequence_length = shape.sequence;
  options.keep_trace = true;
  RankOutcome outcome;
  WorldOptions world;
  world.ranks = 1;
  Runner().backends().make("cuda", world)->run([&](RankHandle handle) {
    outcome = run_rank(handle, model, strategy, data, options);
  });
  return outcome;
}

// Bytes a second of the run's large copies on one stream; 0: there were none.
double copy_rate(const Trace& trace, StreamId stream, std::int64_t large) {
  double bytes = 0, nanoseconds = 0;
  for (const TraceEvent& event : trace.events()) {
    if (event.type != EventType::copy || event.stream != static_cast<std::uint8_t>(stream))
      continue;
    if (event.scope.step < kFirst || event.bytes_read < large) continue;
    bytes += static_cast<double>(event.bytes_read);
    nanoseconds += static_cast<double>(event.timing.end_ns - event.timing.start_ns);
  }
  return nanoseconds > 0 ? bytes / nanoseconds * 1e9 : 0;
}

// Share of the host's update during which `streams` work.
double covered(const Trace& trace, std::initializer_list<StreamId> streams) {
  const auto host = test::busy(trace, {StreamId::host}, kFirst, kLast);
  const double seconds = test::total_seconds(host);
  if (seconds <= 0) return 0;
  return test::common_seconds(host, test::busy(trace, streams, kFirst, kOffloadSteps)) / seconds;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

struct Bus {
  double in = 0, out = 0;  // bytes a second
};

// Of the step time, where part f has left a profile.
Json prediction_error(const Trace& trace, const std::string& profile) {
  if (!std::filesystem::exists(profile)) return {};
  const sim::ClusterSpec cluster = sim::parse_cluster(read_file(profile), profile);
  return 1 / (1 + sim::step_error({&trace, 1, 0}, cluster)) - 1;
}

Json measure(const CopyShape& shape, bool delayed, const std::string& profile, const Bus& bus,
             Report& report) {
  const Strategy strategy = offloaded(shape, delayed);
  const RankOutcome outcome = train(shape, strategy);
  const double in = copy_rate(outcome.trace, StreamId::copy_in, shape.large);
  const double out = copy_rate(outcome.trace, StreamId::copy_out, shape.large);
  if (in <= 0 || out <= 0) report.fail(strategy.name + ": copies without times");
  for (const double loss : outcome.result.loss) {
    if (!std::isfinite(loss)) report.fail(strategy.name + ": a loss that is no number");
  }
  return {{"run", strategy.name},
          {"step_seconds", outcome.result.step_seconds},
          {"error_of_predicted_step", prediction_error(outcome.trace, profile)},
          {"host_to_device_bytes_per_second", in},
          {"device_to_host_bytes_per_second", out},
          {"host_to_device_of_bus", in / bus.in},
          {"device_to_host_of_bus", out / bus.out},
          {"host_update_beside_copies",
           covered(outcome.trace, {StreamId::copy_in, StreamId::copy_out})},
          {"host_update_beside_compute", covered(outcome.trace, {StreamId::compute})}};
}

}  // namespace

void run_offload(Report& report, const Options& options) {
  const CopyShape& shape = options.tiny ? kTiny : kShape;
  report.settings["bus"] = "cudaMemcpyAsync of " + std::to_string(shape.block) +
                           " bytes between pinned and device memory, median of 5";
  report.settings["runs"] = std::string(shape.model) +
                            ", one rank, bf16, ZeRO-2, Adam on the host; "
                            "copies of at least " +
                            std::to_string(shape.large) + " bytes count";
  report.settings["goal_of_bus"] = kGoalOfBus;
  report.settings["error_of_predicted_step"] =
      "predicted / measured - 1, priced with part f's profile";
  const Bus bus{bus_rate(StreamId::copy_in, shape.block),
                bus_rate(StreamId::copy_out, shape.block)};
  report.figures["bus"] = {{"host_to_device_bytes_per_second", bus.in},
                           {"device_to_host_bytes_per_second", bus.out}};
  const Json plain = measure(shape, false, options.profile(), bus, report);
  const Json delayed = measure(shape, true, options.profile(), bus, report);
  report.figures["runs"] = {plain, delayed};
  report.summary = "copies at " + percent(plain.at("host_to_device_of_bus")) + " and " +
                   percent(plain.at("device_to_host_of_bus")) + " of the bus; " +
                   percent(plain.at("host_update_beside_copies")) +
                   " of the host's update beside copies, delayed " +
                   percent(delayed.at("host_update_beside_compute")) + " beside compute";
}

}  // namespace zl::gpu
