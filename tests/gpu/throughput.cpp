// Part d: tokens per second and MFU of `zerolab run --backend cuda`, in turn with PyTorch.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "backends/cuda/cudnn_attention.h"
#include "core/base/error.h"
#include "scenarios/model_file.h"
#include "tests/gpu/facts.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/process.h"
#include "tests/gpu/training.h"

namespace zl::gpu {
namespace {

constexpr std::int64_t kMostTokens = 131072, kTinyTokens = 32;  // of a step: more gains nothing
constexpr int kSearchSteps = 4, kSteps = 10, kMostPairs = 3;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::int64_t free_bytes() {
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
  return static_cast<std::int64_t>(free);
}

Json model_json(const ModelConfig& m) {
  return {{"family", m.family},
          {"layers", m.layers},
          {"hidden", m.hidden},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"head_size", m.head_size},
          {"ffn", m.ffn},
          {"vocab", m.vocab},
          {"max_sequence", m.max_sequence},
          {"norm_epsilon", m.norm_epsilon},
          {"rope_theta", m.rope_theta},
          {"tied_embeddings", m.tied_embeddings}};
}

// One model: the best batch, then pairs of runs.
class Study {
 public:
  Study(const TrainingShape& shape, const Options& options, Worker* pytorch, double deadline)
      : shape_(shape),
        options_(options),
        model_(load_model(shape.model)),
        pytorch_(pytorch),
        deadline_(deadline) {}

  Json run(double peak) {
    find_batch();
    prepare_pytorch();
    const int pairs = options_.quick ? 1 : kMostPairs;
    for (int pair = 0; pair < pairs; ++pair) {
      const double start = now();
      add_pair();
      const double took = now() - start;
      if (now() + took > deadline_) break;
    }
    return figures(peak);
  }

 private:
  double left() const { return std::max(1.0, deadline_ - now()); }

  Json ours(std::int64_t batch, int steps) {
    return run_zerolab(options_.zerolab, shape_, "cuda", batch, steps, left());
  }

  // The simulator says which powers of two fit; short runs say which of the largest is fastest.
  void find_batch() {
    const std::string budget = std::to_string(free_bytes());
    const std::int64_t most = options_.tiny ? kTinyTokens : kMostTokens;
    std::int64_t fits = 0;
    for (std::int64_t batch = 1; batch * shape_.sequence <= most; batch *= 2) {
      const Json predicted = run_zerolab(options_.zerolab, shape_, "sim", batch, 2, left(),
                                         {"--cluster", "h200", "--device-memory", budget});
      if (predicted.at("outcome") != "ok") break;
      fits = batch;
    }
    if (fits == 0) throw Error(ErrorCode::failed, "not one sequence fits this GPU");
    double best = 0;
    int tried = 0;
    for (std::int64_t batch = fits; batch >= 1 && tried < 3; batch /= 2) {
      const Json result = ours(batch, kSearchSteps);
      Json& entry = search_.emplace_back(Json{{"batch", batch}, {"outcome", result.at("outcome")}});
      if (result.at("outcome") != "ok") continue;
      ++tried;
      const double rate = result.at("tokens_per_second");
      entry["tokens_per_second"] = rate;
      if (rate > best) {
        best = rate;
        batch_ = batch;
      } else if (rate < 0.97 * best) {
        break;
      }
    }
    if (batch_ == 0) throw Error(ErrorCode::failed, "no batch size ran; see the search");
  }

  // The same batch for PyTorch, or the largest half of it that fits.
  void prepare_pytorch() {
    if (pytorch_ == nullptr) return;
    for (their_batch_ = batch_; their_batch_ >= 1; their_batch_ /= 2) {
      const double patience = left();
      loaded_ = pytorch_->ask({{"cmd", "load"},
                               {"model", model_json(model_)},
                               {"batch", their_batch_},
                               {"sequence", shape_.sequence},
                               {"compile", options_.compile}},
                              patience);
      if (loaded_.at("ok").get<bool>()) return;
      if (loaded_.at("error") != "out of memory") break;
    }
    their_batch_ = 0;
  }

  void add_pair() {
    const Json result = ours(batch_, kSteps);
    if (result.at("outcome") != "ok") {
      throw Error(ErrorCode::failed, "outcome " + result.at("outcome").get<std::string>());
    }
    last_ = result;
    for (const double loss : result.at("loss")) finite_ = finite_ && std::isfinite(loss);
    our_steps_.push_back(result.at("step_time_seconds").at("median"));
    if (their_batch_ == 0) return;
    const Json answer = pytorch_->ask({{"cmd", "steps"}, {"count", kSteps}}, left());
    if (!answer.at("ok").get<bool>()) {
      throw Error(ErrorCode::failed, "PyTorch: " + answer.at("error").get<std::string>());
    }
    their_steps_.push_back(median(answer.at("times").get<std::vector<double>>()));
    const auto rate = [](std::int64_t batch, double seconds) {
      return static_cast<double>(batch) / seconds;
    };
    ratios_.push_back(rate(batch_, our_steps_.back()) / rate(their_batch_, their_steps_.back()));
  }

  Json side(std::int64_t batch, const std::vector<double>& steps, double peak) const {
    const double tokens = static_cast<double>(batch * shape_.sequence);
    const double seconds = median(steps);
    const double flops = tokens * flops_per_token(model_, shape_.sequence) / seconds;
    return {{"batch", batch},
            {"step_seconds", steps},
            {"median_step_seconds", seconds},
            {"tokens_per_second", tokens / seconds},
            {"tflops", flops / 1e12},
            {"mfu", peak > 0 ? Json(flops / peak) : Json()}};
  }

  Json figures(double peak) const {
    Json all = {{"model", shape_.model},
                {"sequence", shape_.sequence},
                {"parameters", model_.parameters()},
                {"flops_per_token", flops_per_token(model_, shape_.sequence)},
                {"search", search_},
                {"zerolab", side(batch_, our_steps_, peak)},
                {"losses_finite", finite_},
                {"peak_bytes", last_.at("peak_bytes").at("device").at("total")},
                {"reserved_bytes", last_.at("reserved_bytes")}};
    if (!ratios_.empty()) {
      all["pytorch"] = side(their_batch_, their_steps_, peak);
      all["pytorch"]["load"] = loaded_;
      all["ratios"] = ratios_;
      all["ratio"] = median(ratios_);
    } else if (pytorch_ != nullptr) {
      all["pytorch"] = loaded_;
    }
    all["goals_on_h200"] = {
        {"mfu", shape_.goal}, {"mfu_aim", shape_.aim}, {"ratio", 1.0}, {"ratio_aim", 1.1}};
    return all;
  }

  const TrainingShape& shape_;
  const Options& options_;
  ModelConfig model_;
  Worker* pytorch_;
  double deadline_;
  std::int64_t batch_ = 0, their_batch_ = 0;
  Json search_ = Json::array(), loaded_, last_;
  std::vector<double> our_steps_, their_steps_, ratios_;
  bool finite_ = true;
};

std::string line(const char* name, const Json& figures) {
  char text[160];
  const Json& ours = figures.at("zerolab");
  const double mfu = ours.at("mfu").is_null() ? 0 : ours.at("mfu").get<double>();
  std::snprintf(text, sizeof text, "%s %.0f tok/s, MFU %.1f %%", name,
                ours.at("tokens_per_second").get<double>(), 100 * mfu);
  std::string all = text;
  if (figures.contains("ratio")) {
    std::snprintf(text, sizeof text, ", %.2fx torch", figures.at("ratio").get<double>());
    all += text;
  }
  return all;
}

void settings(Report& report, double peak) {
  report.settings["zerolab"] =
      "zerolab run --backend cuda --strategy zero-0 --ranks 1 --precision bf16 --data synthetic "
      "--no-deterministic: bf16 weights, fp32 masters, moments and gradients, AdamW, clipping at "
      "1, "
      "no recomputation; attention: " +
      cuda::describe_attention();
  report.settings["mfu"] = "(6 N + 6 L C T) tokens / second over the data sheet's dense bf16 peak";
  report.settings["peak_flops"] = peak > 0 ? Json(peak) : Json();
  report.settings["order"] = "zerolab, PyTorch, zerolab, ...; medians of steps, then of runs";
  report.settings["steps"] = kSteps;
}

}  // namespace

void run_throughput(Report& report, const Options& options) {
  const double begin = now();
  const Json facts = machine_facts();
  const double peak = nominal_bf16_peak(facts.at("device"));
  settings(report, peak);
  std::unique_ptr<Worker> pytorch;
  if (!options.python.empty()) {
    pytorch = std::make_unique<Worker>(std::vector<std::string>{options.python, options.script});
    try {
      report.settings["pytorch"] = pytorch->ask({{"cmd", "hello"}}, 60);
      report.settings["pytorch"]["compile"] = options.compile;
    } catch (const Error& error) {
      report.fail(error.what());
      pytorch.reset();
    }
  } else {
    report.settings["pytorch"] = "not measured: no Python with a torch that sees the GPU";
  }
  const std::span<const TrainingShape> shapes = training_shapes(options.tiny);
  int left = options.quick ? 1 : static_cast<int>(shapes.size());
  for (const TrainingShape& shape : shapes) {
    if (left == 0) break;
    const double share = (begin + options.budget - now()) / left--;
    try {
      Study study(shape, options, pytorch.get(), now() + share);
      const Json figures = study.run(peak);
      report.figures[shape.name] = figures;
      if (!figures.at("losses_finite").get<bool>()) {
        report.fail(std::string(shape.name) + ": a loss is not finite");
      }
      std::cout << line(shape.name, figures) << std::endl;
      report.summary += (report.summary.empty() ? "" : "; ") + line(shape.name, figures);
    } catch (const std::exception& error) {
      report.fail(std::string(shape.name) + ": " + error.what());
    }
  }
}

}  // namespace zl::gpu
