// Part e: every op at training shapes over the ceilings measured in the same run, and attention in
// turn with PyTorch.
#include <algorithm>
#include <cmath>
#include <memory>

#include "core/base/error.h"
#include "tests/gpu/kernels/table.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/process.h"

namespace zl::gpu {
namespace {

constexpr double kGoal = 0.8, kAim = 0.9;  // of the copy's bandwidth, for ops limited by memory

void write_ceilings(Report& report, const Ceilings& ceilings) {
  report.figures["ceilings"] = {{"copy_bytes_per_second", ceilings.copy},
                                {"gemm_bf16_flops", ceilings.gemm_bf16},
                                {"gemm_f32_flops", ceilings.gemm_f32}};
  report.settings["ceilings"] =
      "cudaMemcpyAsync of 1 GiB on the device, read and written bytes counted; cuBLASLt at "
      "8192x8192x8192 on normal random numbers";
  report.settings["timing"] =
      "CUDA events; median of 5 means over launches that fill 10 ms; bytes as the op's cost says, "
      "larger than the L2 cache";
  report.settings["goals_on_h200"] = {{"share_of_copy", kGoal},
                                      {"share_of_copy_aim", kAim},
                                      {"attention_over_torch", 0.7},
                                      {"attention_aim", 1.0}};
}

// Counts rows at the goal; every time must be a number.
void write_rows(Report& report, const std::vector<Row>& rows) {
  int memory_bound = 0, at_goal = 0;
  const Row* slowest = nullptr;
  for (const Row& row : rows) {
    const bool compute = row.limit == Limit::compute;
    Json entry = {{"kernel", row.name}, {"shape", row.shape}, {"seconds", row.seconds}};
    entry[compute ? "flops" : "bytes_per_second"] = row.achieved;
    if (row.limit != Limit::launch) entry[compute ? "share_of_gemm" : "share_of_copy"] = row.share;
    report.figures["kernels"].push_back(std::move(entry));
    if (!std::isfinite(row.achieved) || row.achieved <= 0) report.fail(row.name + ": no time");
    if (row.limit != Limit::memory) continue;
    ++memory_bound;
    at_goal += row.share >= kGoal ? 1 : 0;
    if (slowest == nullptr || row.share < slowest->share) slowest = &row;
  }
  char text[200];
  std::snprintf(text, sizeof text,
                "%d of %d memory-bound kernels at %.0f %% of copy (least: %s, %.0f %%)", at_goal,
                memory_bound, 100 * kGoal, slowest->name.c_str(), 100 * slowest->share);
  report.summary = text;
}

// The fastest of PyTorch's backends in one direction; 0: none ran.
double fastest(const Json& backends, const char* direction) {
  double best = 0;
  for (const Json& backend : backends) {
    if (!backend.contains(direction)) continue;
    const double seconds = backend.at(direction);
    if (best == 0 || seconds < best) best = seconds;
  }
  return best;
}

Json compare_attention(Bench& bench, const AttentionCase& shape, Worker* pytorch, double seconds) {
  const AttentionSeconds ours = measure_attention(bench, shape);
  Json entry = {{"batch", shape.batch},       {"heads", shape.heads},
                {"sequence", shape.sequence}, {"head_size", shape.head_size},
                {"forward", ours.forward},    {"backward", ours.backward}};
  if (pytorch == nullptr) return entry;
  const Json theirs = pytorch->ask({{"cmd", "attention"},
                                    {"batch", shape.batch},
                                    {"heads", shape.heads},
                                    {"sequence", shape.sequence},
                                    {"head_size", shape.head_size}},
                                   seconds);
  entry["pytorch"] = theirs;
  if (!theirs.at("ok").get<bool>()) return entry;
  const Json& backends = theirs.at("backends");
  const double forward = fastest(backends, "forward"), backward = fastest(backends, "backward");
  if (forward == 0 || backward == 0) return entry;
  entry["forward_over_torch"] = forward / ours.forward;
  entry["backward_over_torch"] = backward / ours.backward;
  return entry;
}

void write_attention(Report& report, Bench& bench, const Options& options, double deadline) {
  std::unique_ptr<Worker> pytorch;
  if (!options.python.empty()) {
    pytorch = std::make_unique<Worker>(std::vector<std::string>{options.python, options.script});
    report.settings["pytorch"] = pytorch->ask({{"cmd", "hello"}}, deadline - now());
  } else {
    report.settings["pytorch"] = "not measured: no Python with a torch that sees the GPU";
  }
  for (const AttentionCase& shape : options.tiny ? kTinyAttentionCases : kAttentionCases) {
    const Json entry = compare_attention(bench, shape, pytorch.get(), deadline - now());
    report.figures["attention"].push_back(entry);
    if (!entry.contains("forward_over_torch")) continue;
    char text[120];
    std::snprintf(text, sizeof text, "; attention d%d T%d %.2fx/%.2fx torch",
                  static_cast<int>(shape.head_size), static_cast<int>(shape.sequence),
                  entry.at("forward_over_torch").get<double>(),
                  entry.at("backward_over_torch").get<double>());
    report.summary += text;
  }
}

}  // namespace

void run_kernels(Report& report, const Options& options) {
  const double deadline = now() + options.budget;
  GpuBench bench(options.tiny ? 1e-5 : 0.01);
  const Ceilings ceilings = measure_ceilings(bench, options.tiny);
  write_ceilings(report, ceilings);
  write_rows(report, measure_table(bench, ceilings, options.tiny));
  write_attention(report, bench, options, deadline);
}

}  // namespace zl::gpu
