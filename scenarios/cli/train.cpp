// `zerolab train`: one strategy, a line per step, and the weights at the end.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/experiment.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/progress.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/model_folder.h"
#include "scenarios/run/measure.h"
#include "scenarios/run/training_data.h"
#include "scenarios/weights/save_model.h"

namespace zl::cli {
namespace {

struct TrainOptions {
  ScenarioOptions scenario;
  DatabaseOptions database;
  std::string format = "table";
  std::int64_t log_every = 1;
  std::string save;
  double epochs = 0;  // 0: run.steps
  RunHooks hooks;     // the checkpoint, the time-out and keep_going; the rest is added
};

// The line of a step. What it knows of the run is fixed before the first one.
class StepLines {
 public:
  StepLines(const Scenario& scenario, const Strategy& strategy, bool predicted)
      : steps_(scenario.run.steps), scaled_(strategy.precision.compute_dtype == DType::f16) {
    tokens_ = static_cast<double>(tokens_per_step(scenario, strategy));
    flops_ = tokens_ * scenario.model.flops_per_token(scenario.run.sequence_length);
    const sim::ClusterSpec cluster = predicted ? scenario_cluster(scenario) : load_cluster("local");
    peak_ = cluster_peak_flops(cluster, strategy.precision.compute_dtype);
  }

  std::string text(std::int64_t step, const StepMetrics& metrics, double seconds) const {
    std::string line = begin_of(step) + fmt::format("loss {:.5f}  norm ", metrics.loss);
    line += metrics.skipped ? std::string("overflow, skipped")
                            : fmt::format("{:.4f}", metrics.grad_norm);
    line += fmt::format("  lr {:.3e}", metrics.lr);
    if (scaled_) line += fmt::format("  scale {:g}", metrics.loss_scale);
    line += fmt::format("  {:.0f} tokens/s", tokens_ / seconds);
    const double mfu = peak_ > 0 ? flops_ / seconds / peak_ : 0;
    line += mfu > 0 && mfu <= 1 ? fmt::format("  MFU {:.1f} %", mfu * 100) : "  MFU n/a";
    return line;
  }

  std::string text(const EvaluationPoint& point, bool is_best) const {
    return begin_of(point.step) +
           fmt::format("validation loss {:.5f}  perplexity {:.4f}  ({} tokens){}", point.loss,
                       point.perplexity(), point.tokens, is_best ? "  best so far" : "");
  }

 private:
  std::string begin_of(std::int64_t step) const {
    const int digits = static_cast<int>(std::to_string(steps_).size());
    return fmt::format("step {:>{}}/{}  ", step, digits, steps_);
  }

  std::int64_t steps_;
  bool scaled_;
  double tokens_ = 0, flops_ = 0, peak_ = 0;
};

Table steps_table(const RunResult& run) {
  Table table{{{"step"}, {"loss"}, {"grad_norm"}, {"learning_rate"}, {"loss_scale"}, {"seconds"}},
              {}};
  const auto at = [](const std::vector<double>& values, std::size_t i) {
    return i < values.size() ? Cell(values[i]) : Cell();  // a simulated run has times only
  };
  for (std::size_t i = 0; i < run.step_seconds.size(); ++i) {
    table.rows.push_back({run.first_step + static_cast<std::int64_t>(i) + 1, at(run.loss, i),
                          at(run.grad_norm, i), at(run.learning_rate, i), at(run.loss_scale, i),
                          run.step_seconds[i]});
  }
  return table;
}

std::string loss_text(const RunResult& run) {
  if (run.loss.empty()) return "";
  return fmt::format("loss {:.4f} -> {:.4f}, ", run.loss.front(), run.loss.back());
}

// Samples are drawn with replacement: an epoch is as many tokens as the data has. An encoder's
// texts come once each in an epoch.
std::int64_t steps_of(const TrainOptions& options, const Scenario& scenario) {
  const TrainingData data = open_data(scenario);
  if (data.tokens == 0) {
    throw Error(ErrorCode::usage, "--epochs: synthetic data has no end; give --steps");
  }
  const char* unit = data.texts > 0 ? "texts" : "tokens";
  const std::int64_t all = data.texts > 0 ? data.texts : data.tokens;
  auto a_step =
      static_cast<double>(tokens_per_step(scenario, scenario.strategies.front().strategy));
  if (data.texts > 0) a_step /= static_cast<double>(scenario.run.sequence_length);
  const double steps = std::ceil(options.epochs * static_cast<double>(all) / a_step);
  if (!(steps >= 1 && steps <= static_cast<double>(kMaxCount))) {
    throw Error(ErrorCode::usage,
                fmt::format("--epochs: {:g} of {} {}, {:.0f} a step, are {:.0f} steps; from 1 "
                            "to {} can be taken",
                            options.epochs, all, unit, a_step, steps, kMaxCount));
  }
  log_info(fmt::format("{:g} epochs of {} {} are {:.0f} steps", options.epochs, all, unit, steps));
  return static_cast<std::int64_t>(steps);
}

std::string best_text(const RunResult& run) {
  const EvaluationPoint* best = best_evaluation(run);
  if (best == nullptr) return "";
  return fmt::format(", validation loss {:.4f} (perplexity {:.3f}) after step {}", best->loss,
                     best->perplexity(), best->step);
}

// What was saved, where it is not what the training ended with.
std::string kept_text(const RunResult& run) {
  const EvaluationPoint* best = best_evaluation(run);
  if (best == nullptr || best->step == run.first_step + run.steps) return "";
  return fmt::format(": as it was after step {}, the best by validation loss", best->step);
}

// How each label is told, where they are few enough to read.
std::string by_label_text(const LabelScores& labels) {
  constexpr std::size_t kMost = 20;
  if (labels.by_label.size() > kMost) return "";
  std::string text =
      fmt::format("  {:<26} {:>8} {:>8} {:>8}   F1\n", "label", "texts", "told", "correct");
  for (const LabelScores::Of& of : labels.by_label) {
    text += fmt::format("  {:<26} {:>8} {:>8} {:>8}   {:.4f}\n", shortened(of.name), of.texts,
                        of.told, of.correct, of.f1());
  }
  return text;
}

// The model's share of texts, with its interval, beside what it takes no model for.
std::string labels_text(const LabelScores& labels) {
  if (labels.rows == 0) return "";
  const auto line = [](const char* what, double accuracy, double f1) {
    return fmt::format("  {:<26} {:.4f}      {:.4f}", what, accuracy, f1);
  };
  return fmt::format("labels of {} texts of {} (loss {:.4f}):\n", labels.rows, labels.data,
                     labels.loss) +
         fmt::format("  {:<26} accuracy    macro F1\n", "") +
         line("this model", labels.accuracy, labels.macro_f1) +
         fmt::format("   (95 % between {:.4f} and {:.4f})\n", labels.accuracy_low,
                     labels.accuracy_high) +
         line("naive Bayes over words", labels.words_accuracy, labels.words_macro_f1) + "\n" +
         line("always the commonest", labels.majority_accuracy, labels.majority_macro_f1) + "\n" +
         by_label_text(labels);
}

std::string summary(const RunResult& run) {
  if (run.steps == 0) return "";
  std::string text = fmt::format(
      "{} on {}: {} steps on {} ranks, {}{:.0f} tokens/s, step {} (median), "
      "peak memory {} per rank",
      run.strategy, run.backend, run.steps, run.ranks, loss_text(run), run.tokens_per_second,
      readable(run.step_time.median, Unit::seconds),
      readable(run.peak_device.total(), Unit::bytes));
  text += run.mfu > 0 ? fmt::format(", MFU {:.1f} % ({})", run.mfu * 100, run.mfu_convention)
                      : fmt::format(", MFU n/a ({}; the peak is unknown until `zerolab calibrate`)",
                                    run.mfu_convention);
  text += best_text(run);
  if (run.skipped_steps > 0) text += fmt::format(", {} steps skipped", run.skipped_steps);
  if (run.run_id != 0) text += fmt::format(", stored as run {}", run.run_id);
  return text + "\n" + labels_text(run.labels);
}

ImportedStrategy the_strategy(const Scenario& scenario) {
  if (scenario.strategies.size() > 1) {
    log_info("training " + scenario.strategies.front().strategy.name +
             ", the first strategy; choose another with --strategy");
  }
  return scenario.strategies.front();
}

std::string the_backend(const TrainOptions& options, const Scenario& scenario,
                        const Runner& runner) {
  const auto backends = choose_backends(options.scenario.backends, scenario, runner);
  if (backends.size() > 1) {
    throw Error(ErrorCode::usage, "--backend: train uses one; `zerolab run` compares several");
  }
  const bool predicted = runner.backends().capabilities(backends.front()).is_recording;
  if (predicted && !options.save.empty()) {
    throw Error(ErrorCode::usage, "--save: the simulator has no weights; use --backend cpu");
  }
  if (predicted && !options.hooks.checkpoint.folder.empty()) {
    throw Error(ErrorCode::usage, "--checkpoint: the simulator has no state; use --backend cpu");
  }
  return backends.front();
}

void print_result(Format format, const Experiment& experiment, const RunResult& result) {
  if (format == Format::table) {
    print(summary(result));
  } else if (format == Format::json) {
    print(run_json(experiment.scenario().name, result.backend, experiment.environment(),
                   {&result, 1}) +
          "\n");
  } else {
    print(render(steps_table(result), format));
  }
}

// Refuses a bad path before training.
void check_save(const TrainOptions& options) {
  if (options.save.empty()) return;
  if (is_weights_file(options.save)) {
    if (options.hooks.save_dtype) {
      throw Error(ErrorCode::usage,
                  "--save-dtype: a .safetensors file has fp32 weights; give --save a folder");
    }
    AtomicFile probe(options.save);
  } else {
    check_model_folder(options.save);
  }
}

int train(const TrainOptions& options) {
  const Format format = parse_format(options.format);
  const Runner runner;
  Scenario scenario = load(options.scenario);
  scenario.strategies = {the_strategy(scenario)};
  const std::string backend = the_backend(options, scenario, runner);
  if (options.epochs > 0) scenario.run.steps = steps_of(options, scenario);
  check_save(options);
  Experiment experiment(runner, std::move(scenario), options.database);
  const ImportedStrategy& strategy = experiment.scenario().strategies.front();
  const std::int64_t steps = experiment.scenario().run.steps;

  const bool predicted = runner.backends().capabilities(backend).is_recording;
  const StepLines lines(experiment.scenario(), strategy.strategy, predicted);
  ProgressBar bar("training", steps);
  RunHooks hooks = options.hooks;
  hooks.on_step = [&](std::int64_t step, const StepMetrics& metrics, double seconds) {
    bar.clear();
    if (step % options.log_every == 0 || step == 1 || step == steps || metrics.skipped) {
      const std::string line = lines.text(step, metrics, seconds);
      format == Format::table ? print(line + "\n") : log_info(line);
    }
    bar.update(step);
  };
  hooks.on_evaluation = [&](const EvaluationPoint& point, bool is_best) {
    bar.clear();
    const std::string line = lines.text(point, is_best);
    format == Format::table ? print(line + "\n") : log_info(line);
  };
  if (predicted) hooks.on_step = nullptr;  // its steps are recorded, not taken
  hooks.save_weights_to = options.save;
  const RunResult result = experiment.run(strategy, backend, std::move(hooks));
  bar.clear();
  announce(result);
  const bool has_weights = result.outcome == Outcome::ok || experiment.interrupted();
  const bool is_older = result.best_before && best_evaluation(result) == &*result.best_before;
  if (!options.save.empty() && result.steps > 0 && has_weights && !is_older) {
    log_info("wrote " + options.save + kept_text(result));
  }
  print_result(format, experiment, result);
  return experiment.exit_code({&result, 1});
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("train", "Train one strategy and watch it");
  const auto options = std::make_shared<TrainOptions>();
  add_scenario_options(*sub, options->scenario);
  add_database_options(*sub, options->database);
  sub->add_option("--log-every", options->log_every, "Print every N-th step")
      ->check(CLI::Range(std::int64_t{1}, kMaxCount));
  sub->add_option(
      "--save", options->save,
      "Write the final weights: a folder that transformers loads, or a .safetensors file "
      "of fp32");
  sub->add_option_function<std::string>(
      "--save-dtype",
      [options](const std::string& text) { options->hooks.save_dtype = parse_dtype(text); },
      "Of the folder: fp32, bf16 or fp16 (default: as the weights it began with, else fp32)");
  sub->add_option("--epochs", options->epochs,
                  "Instead of --steps: as many as take the data's tokens so many times")
      ->check(CLI::PositiveNumber)
      ->excludes("--steps");
  add_checkpoint(*sub, options->hooks.checkpoint);
  add_collective_timeout(*sub, options->hooks.collective_timeout);
  add_keep_going(*sub, options->hooks.keep_going);
  add_format(*sub, options->format, "table, md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return train(*options); }; });
}

}  // namespace zl::cli
