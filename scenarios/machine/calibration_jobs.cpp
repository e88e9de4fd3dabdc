#include "scenarios/machine/calibration_jobs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "scenarios/files/model_file.h"

namespace zl {
namespace {

// What a backend is measured with. Shapes spread over the widths that such machines train, none of
// them in the catalogue: narrow to wide, short to long; for processors also, in both families, ones
// that fixed times decide, ones of few tokens and ones whose weights no cache holds (of layers that
// alone would fit, too), of widths that are powers of two (rows of which lie in the same sets of a
// cache) and that are none; of the llamas some whose heads share keys or have norms. Rare ops are
// seen on a few shapes, which hold vectors of a row up to those that no cache holds, and files on
// some from those of one request to those that keep every queue full.
struct CalibrationPlan {
  std::vector<CalibrationShape> shapes;
  std::int64_t peak_size;  // of the square GEMM whose rate is the ceiling
  std::vector<int> ranks;  // measured where the caller names none
  const char* precision;   // likewise
  bool on_cores = true;    // ranks share the cores, which they may outnumber
};
const CalibrationPlan kCpuPlan = {{{128, 4, 3, 192, 2, 320, "gpt2", kRare | kInFiles},
                                   {192, 6, 4, 256, 2, 256},
                                   {320, 10, 3, 256, 2, 384, "gpt2", kInFiles},
                                   {48, 3, 2, 48, 1, 256, "llama", 0, 24, 1},
                                   {80, 5, 2, 56, 1, 320, "gpt2", 0, 24},
                                   {224, 7, 3, 64, 1, 512, "gpt2", 0, 8},
                                   {448, 7, 2, 64, 1, 2048, "llama"},
                                   {512, 8, 2, 64, 1, 2048, "gpt2", kRare},
                                   {1024, 16, 1, 64, 1, 32768, "gpt2", kBrief | kRare | kInFiles},
                                   {928, 16, 2, 64, 1, 2048, "llama", kBrief | kQkNorm, 1, 8},
                                   {832, 13, 2, 256, 1, 8192, "llama", kBrief},
                                   {528, 12, 12, 64, 1, 2048, "llama", kBrief, 1, 4}},
                                  1024,
                                  {1, 2, 4},
                                  "fp32"};
const CalibrationPlan kGpuPlan = {{{896, 14, 3, 1024, 16, 16384, "gpt2", kInFiles},
                                   {1152, 18, 3, 1024, 8, 32768},
                                   {2304, 36, 2, 2048, 4, 32768}},
                                  8192,
                                  {1},
                                  "bf16",
                                  false};
const CalibrationPlan kTinyPlan = {{{32, 2, 1, 16, 1, 48, "gpt2", kRare | kInFiles},
                                    {48, 3, 1, 16, 2, 64, "llama", 0, 1, 1},
                                    {64, 4, 1, 24, 1, 64}},
                                   64,
                                   {1},
                                   "fp32"};

const CalibrationPlan& plan_of(const CalibrationOptions& options, bool on_gpu) {
  if (options.tiny) return kTinyPlan;
  return on_gpu ? kGpuPlan : kCpuPlan;
}

constexpr CalibrationStyle kStyles[] = {
    {"zero-0", 0, false}, {"zero-1", 1, false}, {"zero-2", 2, false}, {"zero-3", 3, false, true}};
constexpr CalibrationStyle kBriefStyles[] = {{"zero-0", 0, false}, {"zero-3", 3, false}};
constexpr CalibrationStyle kOnebit{
    .name = "1-bit Adam", .stage = 0, .optimizer = OptimizerKind::onebit_adam};
// Small sub-groups have much to overlap, large ones are large files.
constexpr CalibrationStyle kOnHost{
    .name = "zero-3 on the host", .stage = 3, .tier = Tier::cpu, .sub_group = 4};
constexpr CalibrationStyle kFromFiles{
    .name = "zero-3 in files", .stage = 3, .once = false, .tier = Tier::nvme, .sub_group = 16};
constexpr CalibrationStyle kRareStyles[] = {
    {.name = "LAMB", .stage = 0, .optimizer = OptimizerKind::lamb},
    {.name = "1-bit LAMB", .stage = 0, .optimizer = OptimizerKind::onebit_lamb},
    {.name = "0/1 Adam", .stage = 0, .optimizer = OptimizerKind::zero_one_adam},
    {.name = "SGD", .stage = 0, .optimizer = OptimizerKind::sgd},
    {.name = "zero-3 quantized", .stage = 3, .least_ranks = 2, .quantized = true},
    {.name = "tensor parallel", .stage = 0, .least_ranks = 2, .tensor = true}};

std::string name_of(const CalibrationShape& shape) {
  return "calibration-" + std::to_string(shape.hidden);
}

ModelConfig training_model(const CalibrationShape& shape) {
  return model_from_json({{"name", name_of(shape)},
                          {"family", shape.family},
                          {"layers", shape.layers},
                          {"hidden", shape.hidden},
                          {"heads", shape.heads},
                          {"kv_heads", shape.kv_heads},
                          {"qk_norm", shape.is(kQkNorm)},
                          {"vocab", shape.vocab},
                          {"max_sequence", shape.sequence}},
                         "calibrate");
}

void offload(Tier tier, const std::string& folder, std::int64_t sub_group, Strategy& s) {
  s.offload.optimizer = s.offload.parameters = tier;
  s.offload.pipeline_read = s.offload.pipeline_write = true;
  s.offload.max_in_cpu = 0;
  s.offload.sub_group_size = sub_group;
  s.offload.nvme_path = folder;
}

// All steps after the first do the same.
OptimizerConfig optimizer_of(OptimizerKind kind) {
  OptimizerConfig optimizer{.kind = kind};
  if (kind == OptimizerKind::sgd) optimizer.momentum = 0.9;
  if (is_onebit(kind)) optimizer.onebit.freeze_step = optimizer.onebit.var_freeze_step = 1;
  return optimizer;
}

std::span<const CalibrationStyle> common_styles(const CalibrationShape& shape) {
  if (shape.is(kBrief)) return kBriefStyles;
  return kStyles;
}

std::vector<CalibrationStyle> rare_styles(const CalibrationShape& shape, int ranks) {
  std::vector<CalibrationStyle> styles;
  if (!shape.is(kBrief)) styles.push_back(kOnebit);
  for (const CalibrationStyle& style : kRareStyles) {
    const bool divides = !style.tensor || shape.heads % ranks == 0;
    if (shape.is(kRare) && ranks >= style.least_ranks && divides) styles.push_back(style);
  }
  return styles;
}

std::vector<int> measured_ranks(const CalibrationPlan& plan, const CalibrationOptions& options,
                                int cores) {
  std::vector<int> ranks = options.ranks.empty() ? plan.ranks : options.ranks;
  const bool is_there = std::ranges::find(ranks, cores) != ranks.end();
  if (plan.on_cores && !is_there && std::ranges::max(ranks) > cores) {
    ranks.insert(ranks.begin(), cores);
  }
  return ranks;
}

}  // namespace

std::string words_of(const CalibrationJob& job) {
  return std::to_string(job.ranks) + " ranks, " + job.precision + ", " + name_of(job.shape) + ", " +
         job.style.name;
}

std::vector<CalibrationJob> calibration_jobs(const CalibrationOptions& options, bool on_gpu,
                                             int cores) {
  const CalibrationPlan& plan = plan_of(options, on_gpu);
  const bool in_files = !options.nvme_path.empty();
  std::vector<std::string> precisions = options.precisions;
  if (precisions.empty()) precisions.emplace_back(plan.precision);
  std::vector<CalibrationJob> jobs;
  for (const int ranks : measured_ranks(plan, options, cores)) {
    const bool outnumber = plan.on_cores && ranks > cores;  // their steps tell all
    for (const std::string& precision : precisions) {
      for (const CalibrationShape& shape : plan.shapes) {
        const auto add = [&](const CalibrationStyle& style) {
          jobs.push_back({ranks, precision, shape, style});
        };
        std::ranges::for_each(common_styles(shape), add);
        if (outnumber) continue;
        std::ranges::for_each(rare_styles(shape, ranks), add);
        if (in_files && shape.is(kInFiles)) {
          add(kFromFiles);
        } else if (!shape.is(kBrief)) {
          add(kOnHost);
        }
      }
    }
  }
  return jobs;
}

std::int64_t calibration_peak_size(const CalibrationOptions& options, bool on_gpu) {
  return plan_of(options, on_gpu).peak_size;
}

ImportedStrategy calibration_strategy(const CalibrationJob& job, const std::string& folder) {
  const auto& [ranks, precision, shape, style] = job;
  ImportedStrategy imported;
  Strategy& s = imported.strategy;
  s.name = "calibration";
  s.zero.stage = style.stage;
  s.zero.quantized_weights = s.zero.quantized_gradients = style.quantized;
  if (style.tensor) s.tensor.ranks = ranks;
  s.zero.overlap_comm = true;
  s.precision.compute_dtype = parse_dtype(precision);
  s.micro_batch = shape.micro_batch;
  s.zero.reduce_bucket_size = shape.hidden * shape.hidden;
  s.zero.prefetch_bucket_size = s.zero.reduce_bucket_size * 9 / 10;
  s.zero.param_persistence_threshold = 0;
  s.zero.max_reuse_distance = 0;
  s.recompute.mode = style.recompute ? RecomputeMode::full : RecomputeMode::none;
  s.optimizer = optimizer_of(style.optimizer);
  if (style.tier != Tier::device) {
    offload(style.tier, folder, style.sub_group * shape.hidden * shape.hidden, s);
  }
  return imported;
}

Scenario calibration_scenario(const CalibrationJob& job, std::int64_t steps) {
  Scenario scenario;
  scenario.name = "calibration";
  scenario.model = training_model(job.shape);
  scenario.cluster = "local";
  scenario.run.ranks = job.ranks;
  scenario.run.steps = steps * job.shape.more_steps;
  scenario.run.sequence_length = job.shape.sequence;
  scenario.run.data = "synthetic";
  return scenario;
}

}  // namespace zl
