// Part d: tokens per second and MFU of `zerolab run --backend cuda`, in turn with PyTorch.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "backends/cuda/cudnn_attention.h"
#include "core/base/error.h"
#include "scenarios/files/model_file.h"
#include "tests/gpu/facts.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/process.h"
#include "tests/gpu/training.h"

namespace zl::gpu {
namespace {

constexpr std::int64_t kMostTokens = 131072, kTinyTokens = 32;  // of a step: more gains nothing
constexpr int kSearchSteps = 4, kSteps = 10, kMostTries = 3, kMostPairs = 3;
constexpr double kShareAlone = 0.4;      // of the part's time: the rest is for pairs
constexpr double kLeastForPyTorch = 10;  // seconds: less does not compile a model

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
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

// One model: the best batch and a run of it alone, so that there are figures whatever becomes of
// PyTorch, then pairs of runs.
class Study {
 public:
  // deadline: of the part, which no run outlasts.
  Study(const TrainingShape& shape, const Options& options, double deadline)
      : shape_(shape), options_(options), model_(load_model(shape.model)), deadline_(deadline) {}

  const char* name() const { return shape_.name; }

  // The search ends early for what is left to be done by `until`.
  void run_alone(double until) {
    find_batch(until);
    add_run();
  }

  // PyTorch and zerolab in turn, at least once, until `until`.
  void run_pairs(Worker& pytorch, double until) {
    if (left() < kLeastForPyTorch) throw Error(ErrorCode::failed, "no time left for PyTorch");
    load(pytorch);
    const int pairs = options_.quick ? 1 : kMostPairs;
    for (int pair = 0; pair < pairs; ++pair) {
      const double start = now();
      add_pair(pytorch);
      const double took = now() - start;
      if (now() + took > until) break;
    }
  }

  void note(const std::string& why_no_pair) { why_no_pair_ = why_no_pair; }

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
      all["ratios"] = ratios_;
      all["ratio"] = median(ratios_);
    }
    if (!loaded_.is_null()) all["pytorch"]["load"] = loaded_;
    if (!why_no_pair_.empty()) all["pytorch"]["error"] = why_no_pair_;
    all["goals_on_h200"] = {
        {"mfu", shape_.goal}, {"mfu_aim", shape_.aim}, {"ratio", 1.0}, {"ratio_aim", 1.1}};
    return all;
  }

 private:
  double left() const { return std::max(1.0, deadline_ - now()); }

  Json ours(std::int64_t batch, int steps) {
    return run_zerolab(options_.zerolab, shape_, "cuda", batch, steps, left());
  }

  // What PyTorch's side keeps on the GPU while we run: weights and two moments in f32, its context.
  std::int64_t kept_by_pytorch() const {
    constexpr std::int64_t kContext = std::int64_t{2} << 30;
    return options_.python.empty() ? 0 : 12 * model_.parameters() + kContext;
  }

  // The largest power of two that the simulator says fits.
  std::int64_t largest_batch() const {
    const std::string budget =
        std::to_string(std::max<std::int64_t>(1, free_bytes() - kept_by_pytorch())) + "B";
    const std::int64_t most = options_.tiny ? kTinyTokens : kMostTokens;
    std::int64_t fits = 0;
    for (std::int64_t batch = 1; batch * shape_.sequence <= most; batch *= 2) {
      const Json predicted = run_zerolab(options_.zerolab, shape_, "sim", batch, 2, left(),
                                         {"--cluster", "h200", "--device-memory", budget});
      if (predicted.at("outcome") != "ok") break;
      fits = batch;
    }
    return fits;
  }

  // Short runs say which of the largest is fastest.
  void find_batch(double until) {
    const std::int64_t fits = largest_batch();
    if (fits == 0) throw Error(ErrorCode::failed, "not one sequence fits this GPU");
    double best = 0;
    int tried = 0;
    for (std::int64_t batch = fits; batch >= 1 && tried < kMostTries; batch /= 2) {
      const double start = now();
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
      const double took = now() - start;
      if (now() + 2 * took > until) break;  // another try, and then the run
    }
    if (batch_ == 0) throw Error(ErrorCode::failed, "no batch size ran; see the search");
  }

  // The same batch for PyTorch, or the largest half of it that fits.
  void load(Worker& pytorch) {
    for (their_batch_ = batch_; their_batch_ >= 1; their_batch_ /= 2) {
      loaded_ = pytorch.ask({{"cmd", "load"},
                             {"model", model_json(model_)},
                             {"batch", their_batch_},
                             {"sequence", shape_.sequence},
                             {"compile", options_.compile}},
                            left());
      if (loaded_.at("ok").get<bool>()) return;
      if (loaded_.at("error") != "out of memory") break;
    }
    their_batch_ = 0;
    throw Error(ErrorCode::failed, "PyTorch: " + loaded_.at("error").get<std::string>());
  }

  void add_run() {
    const Json result = ours(batch_, kSteps);
    if (result.at("outcome") != "ok") {
      throw Error(ErrorCode::failed, "outcome " + result.at("outcome").get<std::string>());
    }
    last_ = result;
    for (const double loss : result.at("loss")) finite_ = finite_ && std::isfinite(loss);
    our_steps_.push_back(result.at("step_time_seconds").at("median"));
  }

  void add_pair(Worker& pytorch) {
    const Json answer = pytorch.ask({{"cmd", "steps"}, {"count", kSteps}}, left());
    if (!answer.at("ok").get<bool>()) {
      throw Error(ErrorCode::failed, "PyTorch: " + answer.at("error").get<std::string>());
    }
    add_run();
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

  const TrainingShape& shape_;
  const Options& options_;
  ModelConfig model_;
  double deadline_;
  std::int64_t batch_ = 0, their_batch_ = 0;
  Json search_ = Json::array(), loaded_, last_;
  std::vector<double> our_steps_, their_steps_, ratios_;
  std::string why_no_pair_;
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
  } else if (figures.contains("pytorch")) {
    all += ", no pair (" + figures.at("pytorch").at("error").get<std::string>() + ")";
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
  report.settings["order"] =
      "all models alone; then each: PyTorch, zerolab, PyTorch, ...; medians of steps, then of runs";
  report.settings["steps"] = kSteps;
}

// Until when the next of `left` things may take its share of the time before `deadline`.
double next_share(double deadline, std::size_t left) {
  return now() + (deadline - now()) / static_cast<double>(left);
}

// A worker that imports torch while zerolab runs alone; null where there is none.
std::unique_ptr<Worker> start_pytorch(const Options& options) {
  if (options.python.empty()) return nullptr;
  return std::make_unique<Worker>(std::vector<std::string>{options.python, options.script});
}

// Whether it has answered.
bool greet(Worker* pytorch, Report& report, const Options& options) {
  if (pytorch == nullptr) {
    report.settings["pytorch"] = "not measured: no Python with a torch that sees the GPU";
    return false;
  }
  try {
    report.settings["pytorch"] = pytorch->ask({{"cmd", "hello"}}, 60);
    report.settings["pytorch"]["compile"] = options.compile;
    return true;
  } catch (const Error& error) {
    report.fail(error.what());
    return false;
  }
}

// Those that ran.
std::vector<Study> run_all_alone(Report& report, const Options& options, double until,
                                 double deadline) {
  std::vector<Study> studies;
  const std::span<const TrainingShape> all = training_shapes(options.tiny);
  const auto shapes = options.quick ? all.first(1) : all;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    try {
      Study study(shapes[i], options, deadline);
      study.run_alone(next_share(until, shapes.size() - i));
      studies.push_back(std::move(study));
    } catch (const std::exception& error) {
      report.fail(std::string(shapes[i].name) + ": " + error.what());
    }
  }
  return studies;
}

// A pair that there was no time for is no failure.
void run_all_pairs(std::vector<Study>& studies, Worker& pytorch, Report& report, double deadline) {
  for (std::size_t i = 0; i < studies.size(); ++i) {
    try {
      studies[i].run_pairs(pytorch, next_share(deadline, studies.size() - i));
    } catch (const std::exception& error) {
      studies[i].note(error.what());
      if (deadline - now() > kLeastForPyTorch) {
        report.fail(std::string(studies[i].name()) + ": " + error.what());
      }
    }
  }
}

}  // namespace

void run_throughput(Report& report, const Options& options) {
  const double begin = now(), deadline = begin + options.budget;
  const double peak = nominal_bf16_peak(machine_facts().at("device"));
  settings(report, peak);
  const std::unique_ptr<Worker> pytorch = start_pytorch(options);
  const double until = pytorch ? begin + kShareAlone * options.budget : deadline;
  std::vector<Study> studies = run_all_alone(report, options, until, deadline);
  if (greet(pytorch.get(), report, options)) run_all_pairs(studies, *pytorch, report, deadline);
  for (const Study& study : studies) {
    const Json figures = study.figures(peak);
    report.figures[study.name()] = figures;
    if (!figures.at("losses_finite").get<bool>()) {
      report.fail(std::string(study.name()) + ": a loss is not finite");
    }
    const std::string text = line(study.name(), figures);
    std::cout << text << std::endl;
    report.summary += (report.summary.empty() ? "" : "; ") + text;
  }
}

}  // namespace zl::gpu
