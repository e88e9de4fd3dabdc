// Part c: what the pool says it holds against what the driver says is gone, and the simulator's
// prediction of both.
#include <cuda_runtime.h>

#include <cmath>
#include <mutex>
#include <span>

#include "backends/cuda/device.h"
#include "backends/cuda/world.h"
#include "core/data/token_source.h"
#include "core/train/rank_program.h"
#include "scenarios/files/model_file.h"
#include "simulator/world.h"
#include "tests/gpu/facts.h"
#include "tests/gpu/parts.h"

namespace zl::gpu {
namespace {

struct Shape {
  const char* model;
  int stage, ranks;
  std::int64_t sequence, micro_batch;
};
constexpr Shape kShapes[] = {{"gpt2-124m", 0, 1, 1024, 8},
                             {"gpt2-124m", 3, 1, 1024, 8},
                             {"gpt2-124m", 2, 4, 512, 2},
                             {"qwen2.5-0.5b", 0, 1, 1024, 2}};
constexpr Shape kTinyShapes[] = {
    {"gpt2-tiny", 0, 1, 16, 2}, {"llama-tiny", 3, 1, 16, 2}, {"gpt2-tiny", 2, 4, 16, 1}};
constexpr double kAllowedShare = 0.01;

// What the context and, on first use, kernels and libraries take; nobody's ledger can hold it.
struct Constants {
  std::optional<std::int64_t> context;
  std::int64_t libraries = 0;
};

std::optional<std::int64_t> make_context() {
  const std::optional<std::int64_t> before = driver_used_bytes();
  if (cudaFree(nullptr) != cudaSuccess) throw Error(ErrorCode::failed, "no CUDA context");
  const std::optional<std::int64_t> after = driver_used_bytes();
  if (!before || !after) return {};
  return *after - *before;
}

Strategy strategy_of(const Shape& shape) {
  Strategy strategy;
  strategy.name = "zero-" + std::to_string(shape.stage);
  strategy.zero.stage = shape.stage;
  strategy.zero.overlap_comm = true;
  strategy.precision.compute_dtype = DType::bf16;
  strategy.micro_batch = shape.micro_batch;
  return strategy;
}

struct Books {
  std::int64_t peak = 0, reserved = 0;  // of one rank
  std::int64_t least_free = INT64_MAX;  // cudaMemGetInfo with every rank's engine alive
};

Books train(World& world, const ModelConfig& model, const Shape& shape) {
  const TokenSource data = TokenSource::synthetic(model.vocab, 7);
  Books books;
  std::mutex mutex;
  world.run([&](RankHandle handle) {
    ProgramOptions options;
    options.steps = 3;
    options.sequence_length = shape.sequence;
    if (world.executed_ranks() == world.ranks()) {
      options.at_end = [&](Engine&) {
        const std::lock_guard lock(mutex);
        books.least_free = std::min(books.least_free, free_bytes());
      };
    }
    const RankOutcome outcome = run_rank(handle, model, strategy_of(shape), data, options);
    if (handle.communicator.rank() != 0) return;
    books.peak = outcome.result.peak_device.total();
    books.reserved = outcome.result.reserved_device;
  });
  return books;
}

double off(std::int64_t got, std::int64_t reference) {
  return static_cast<double>(got) / static_cast<double>(reference) - 1;
}

// Trains once so that kernels and libraries are loaded, then once more to measure.
double measure(const Shape& shape, Report& report, Constants& constants) {
  const ModelConfig model = load_model(shape.model);
  const std::int64_t before = free_bytes();
  train(*cuda::make_world({shape.ranks, 1}), model, shape);
  const std::int64_t empty = free_bytes();
  constants.libraries += before - empty;
  const Books real = train(*cuda::make_world({shape.ranks, 1}), model, shape);
  sim::SimOptions twin;
  twin.device.workspace = cuda::kWorkspace;
  const Books predicted = train(*sim::make_world({shape.ranks, 1}, twin), model, shape);
  const std::int64_t driver = empty - real.least_free;
  const double pool = off(shape.ranks * real.reserved, driver);
  const double simulator = off(shape.ranks * predicted.reserved, driver);
  const std::string name = std::string(shape.model) + " zero-" + std::to_string(shape.stage) +
                           ", " + std::to_string(shape.ranks) + " ranks";
  report.figures["runs"].push_back({{"run", name},
                                    {"sequence", shape.sequence},
                                    {"micro_batch", shape.micro_batch},
                                    {"ledger_peak_bytes", real.peak},
                                    {"predicted_peak_bytes", predicted.peak},
                                    {"pool_reserved_bytes", real.reserved},
                                    {"predicted_reserved_bytes", predicted.reserved},
                                    {"driver_bytes_of_all_ranks", driver},
                                    {"pool_against_driver", pool},
                                    {"simulator_against_driver", simulator}});
  if (real.peak != predicted.peak) report.fail(name + ": the ledger's peak is not the simulator's");
  if (std::abs(pool) > kAllowedShare)
    report.fail(name + ": the pool is off by " + signed_percent(pool, 2));
  if (std::abs(simulator) > kAllowedShare) {
    report.fail(name + ": the simulator is off by " + signed_percent(simulator, 2));
  }
  return std::max(std::abs(pool), std::abs(simulator));
}

}  // namespace

void run_memory(Report& report, const Options& options) {
  report.settings["allowed_share"] = kAllowedShare;
  report.settings["note"] =
      "driver_bytes: cudaMemGetInfo before a run, kernels loaded, less at its end; other programs "
      "on the GPU would disturb it";
  Constants constants{make_context(), 0};
  double worst = 0;
  int done = 0;
  const auto shapes = options.tiny ? std::span<const Shape>(kTinyShapes) : std::span(kShapes);
  for (const Shape& shape : shapes) {
    if (options.quick && done > 0) break;
    worst = std::max(worst, measure(shape, report, constants));
    ++done;
  }
  Json& named = report.figures["constants"];
  named["cuda_context_bytes"] = constants.context ? Json(*constants.context) : Json();
  named["kernels_and_libraries_bytes"] = constants.libraries;
  named["library_workspace_bytes_in_the_ledger"] = cuda::kWorkspace;
  report.summary = std::to_string(done) + " runs, pool and simulator within " +
                   signed_percent(worst, 2) + " of cudaMemGetInfo";
}

}  // namespace zl::gpu
