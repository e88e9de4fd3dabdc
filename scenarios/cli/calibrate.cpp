// `zerolab calibrate`: measures this machine, so that the cluster "local" predicts its processor or
// "local-cuda" its GPUs.
#include "scenarios/machine/calibrate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/progress.h"
#include "scenarios/files/clusters.h"
#include "scenarios/published/fit_software.h"
#include "scenarios/run/runner.h"
#include "simulator/error_bar.h"

namespace zl::cli {
namespace {

struct CalibrateOptions {
  std::string runs, software;  // fits a software to published runs instead
  std::vector<std::string> numbers;
  CalibrationOptions measure;
  std::string output;
  std::string format = "table";
};

// What was fitted: seconds = fixed + units / rate + bytes / bandwidth, units being FLOPs of an op.
// Ops of the host and what moves data between it, the device and files follow the device's ops.
Table rates_table(const sim::Calibration& calibration) {
  Table table{{{"ranks"},
               {"operation", Align::left},
               {"type", Align::left},
               {"fixed", Align::right, Unit::seconds},
               {"FLOP/s"},
               {"bytes/s", Align::right, Unit::bytes},
               {"spread", Align::right, Unit::fraction},
               {"samples"}},
              {}};
  const auto inverse = [](double value) { return value > 0 ? Cell(1 / value) : Cell(); };
  const auto add = [&](int ranks, const std::string& name, std::size_t dtype,
                       const sim::LinearCost& cost, bool flops) {
    if (cost.samples == 0) return;
    const std::string from =
        cost.from_bytes > 0 ? ", from " + readable(cost.from_bytes, Unit::bytes) : "";
    table.rows.push_back({std::int64_t{ranks}, name + from,
                          std::string(name_of(static_cast<DType>(dtype))), cost.fixed,
                          flops ? inverse(cost.per_unit) : Cell(), inverse(cost.per_byte),
                          cost.spread, cost.samples});
  };
  for (const sim::RankCoefficients& fitted : calibration.by_ranks) {
    for (std::size_t dtype = 0; dtype < sim::kDTypes; ++dtype) {
      for (std::size_t op = 0; op < kOpKinds; ++op) {
        const auto add_both = [&](const char* which, const auto& lines, const auto& large) {
          add(fitted.ranks, op_name(op) + std::string(which), dtype, lines[op][dtype], true);
          add(fitted.ranks, op_name(op) + std::string(which), dtype, large[op][dtype], true);
        };
        add_both("", fitted.ops, fitted.large_ops);
        add_both(", weights transposed", fitted.forward_ops, fitted.large_forward_ops);
        add_both(" of weight gradients", fitted.gradient_ops, fitted.large_gradient_ops);
      }
      for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
        add(fitted.ranks, name_of(static_cast<CollectiveKind>(kind)), dtype,
            fitted.collectives[kind][dtype], false);
        add(fitted.ranks, name_of(static_cast<CollectiveKind>(kind)), dtype,
            fitted.large_collectives[kind][dtype], false);
      }
      for (std::size_t op = 0; op < kOpKinds; ++op) {
        add(fitted.ranks, std::string("host: ") + op_name(op), dtype, fitted.host_ops[op][dtype],
            true);
      }
    }
    for (std::size_t route = 0; route < kRoutes; ++route) {
      for (const auto* lines : {&fitted.routes, &fitted.large_routes}) {
        add(fitted.ranks, name_of(static_cast<Route>(route)), static_cast<std::size_t>(DType::u8),
            (*lines)[route], false);
      }
    }
  }
  return table;
}

struct LeftOutRun {
  std::string what;
  double error;
};

// Those that the others predict worst.
Table worst_table(std::vector<LeftOutRun> runs) {
  constexpr std::size_t kShown = 5;
  std::ranges::stable_sort(runs, std::ranges::greater{},
                           [](const LeftOutRun& run) { return std::abs(std::log1p(run.error)); });
  Table table{{{"left out", Align::left},
               {"predicted over measured, less 1", Align::right, Unit::fraction}},
              {}};
  runs.resize(std::min(runs.size(), kShown));
  for (const LeftOutRun& run : runs) {
    table.rows.push_back({run.what, 1 / (1 + run.error) - 1});
  }
  return table;
}

std::string summary(const sim::Calibration& calibration, const std::vector<LeftOutRun>& left_out,
                    Format format) {
  std::string text = render(rates_table(calibration), format);
  if (format == Format::csv) return text;
  text += "\n" + render(worst_table(left_out), format);
  for (const sim::RankCoefficients& fitted : calibration.by_ranks) {
    text += fmt::format("\n{} ranks: host time {} per op, {} per wait, {} per step", fitted.ranks,
                        readable(fitted.seconds_per_event, Unit::seconds),
                        readable(fitted.seconds_per_wait, Unit::seconds),
                        readable(fitted.seconds_per_step, Unit::seconds));
  }
  return text + fmt::format(
                    "\n{} runs measured; nine in ten step times of runs left out of the fit, at "
                    "any moment, are within a factor of {:.2f}\n",
                    calibration.runs, std::exp(sim::kNineInTen * calibration.step_error));
}

sim::Moments parse_moments(const std::string& name) {
  if (name == "typical") return sim::Moments::typical;
  if (name == "quiet") return sim::Moments::quiet;
  throw Error(ErrorCode::usage,
              "--moments: '" + name + "' is unknown; typical and quiet are known");
}

void check(const CalibrateOptions& options) {
  const Runner runner;
  if (runner.backends().capabilities(options.measure.backend).is_recording) {
    throw Error(ErrorCode::usage,
                "--backend: a simulated device has nothing to measure; use cpu or cuda");
  }
  if (options.measure.moments == sim::Moments::quiet && options.measure.backend != "cpu") {
    throw Error(ErrorCode::usage,
                "--moments: quiet ones are looked for on cpu; of a GPU, which is not shared, all "
                "count");
  }
  require_backend(runner, options.measure.backend);
  for (const int ranks : options.measure.ranks) {
    if (ranks < 1 || ranks > kMaxRealRanks) {
      throw Error(ErrorCode::invalid,
                  fmt::format("--ranks: {} is not in 1..{}", ranks, kMaxRealRanks));
    }
  }
  if (options.measure.tiny && options.output.empty()) {
    throw Error(ErrorCode::usage,
                "--tiny: its profile must not become this machine's; name a file with --output");
  }
  if (options.measure.steps < 2) {
    throw Error(ErrorCode::invalid,
                fmt::format("--steps: {} is too few; the first is a warm-up, give at least 2",
                            options.measure.steps));
  }
}

// What was left out, group by group.
Table left_out_table(const SoftwareFit& fit) {
  Table table{{{"left out", Align::left},
               {"runs"},
               {"mean error", Align::right, Unit::fraction},
               {"bias", Align::right, Unit::fraction},
               {"in the others' bar", Align::right, Unit::fraction}},
              {}};
  for (const LeftOut& each : fit.left_out) {
    double sum = 0, absolute = 0;
    for (const double error : each.errors) {
      sum += std::exp(-error) - 1;
      absolute += std::abs(std::exp(-error) - 1);
    }
    const auto count = static_cast<double>(each.errors.size());
    table.rows.push_back({each.group, static_cast<std::int64_t>(each.errors.size()),
                          absolute / count, sum / count, each.inside});
  }
  return table;
}

int calibrate_software(const CalibrateOptions& options) {
  const Format format = parse_format(options.format);
  const sim::Software start = load_software(options.software);
  const std::vector<PublishedRun> runs =
      options.runs == "published" ? catalog_published()
                                  : read_published(read_file(options.runs), options.runs);
  const std::vector<std::string> keys = options.numbers.empty() ? start.fitted : options.numbers;
  if (keys.empty()) {
    throw Error(ErrorCode::usage, "--numbers: " + start.name +
                                      " lists none that were fitted; name some, such as "
                                      "kernels.gemm,host.op_seconds");
  }
  const SoftwareFit fit = fit_software(start, runs, keys);
  const std::string text = fitted_text(software_text(options.software), fit, keys);
  if (!options.output.empty()) write_file(options.output, text);
  if (format == Format::json) {
    print(text);
  } else {
    print(render(left_out_table(fit), format) +
          fmt::format("\n{} runs fitted, root mean square error {}\n", fit.rows,
                      readable(fit.error, Unit::fraction)));
  }
  return 0;
}

int calibrate(const CalibrateOptions& options) {
  if (!options.runs.empty()) return calibrate_software(options);
  const Format format = parse_format(options.format);
  check(options);
  const std::string cluster_name =
      Runner().backends().capabilities(options.measure.backend).cluster;
  const std::string path =
      options.output.empty() ? local_cluster_path(cluster_name) : options.output;
  CalibrationOptions measure = options.measure;
  std::optional<ProgressBar> bar;
  measure.progress = [&](const std::string& what, int done, int total) {
    if (!bar) bar.emplace("calibrating", total);
    bar->clear();
    bar->expect(total);
    log_info(fmt::format("[{}/{}] {}", done + 1, total, what));
    bar->update(done, what);
  };
  std::vector<LeftOutRun> left_out;
  measure.left_out = [&](const std::string& what, double error) {
    left_out.push_back({what, error});
  };
  const sim::ClusterSpec cluster = calibrate_machine(measure);
  bar.reset();
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (options.output.empty()) std::filesystem::create_directories(folder);
  write_file(path, sim::cluster_json(cluster));
  log_info("wrote " + path);
  print(format == Format::json ? sim::cluster_json(cluster) + "\n"
                               : summary(cluster.calibration.value(), left_out, format));
  return 0;
}

// What asks for a measurement: not beside `runs`, which were measured elsewhere.
void add_measured(CLI::App& sub, CalibrationOptions& measure, CLI::Option* runs) {
  sub.add_option("--ranks", measure.ranks, "Numbers of ranks (default 1,2,4; on CUDA 1)")
      ->delimiter(',')
      ->excludes(runs);
  sub.add_option("--precision", measure.precisions,
                 "Precisions, such as fp32,bf16 (default fp32; on CUDA bf16)")
      ->delimiter(',')
      ->excludes(runs);
  sub.add_option("--steps", measure.steps, "Steps of each run")
      ->capture_default_str()
      ->excludes(runs);
  sub.add_option("--backend", measure.backend, "Backend to measure: cpu or cuda")
      ->capture_default_str()
      ->excludes(runs);
  sub.add_option_function<std::string>(
         "--moments",
         [&measure](const std::string& name) { measure.moments = parse_moments(name); },
         "Moments of a processor that are priced: typical, as the next run may expect, or quiet, "
         "as of one that is left alone (takes longer)")
      ->default_str("typical")
      ->excludes(runs);
  sub.add_option("--nvme-path", measure.nvme_path,
                 "Folder whose disk is measured for offload to files (default: the temporary one; "
                 "on CUDA none)")
      ->excludes(runs);
  sub.add_flag("--tiny", measure.tiny,
               "Toy models: tries the command itself, the profile means nothing; needs --output")
      ->excludes(runs)
      ->group("");  // for the project's own tests: not in the help
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "calibrate",
      "Train small models here and fit the prices of the cluster \"local\", or of \"local-cuda\"");
  const auto options = std::make_shared<CalibrateOptions>();
  CLI::Option* runs = sub->add_option(
      "--runs", options->runs,
      "Fit a software's profile to the runs of this CSV (or published: the catalogue's)");
  add_measured(*sub, options->measure, runs);
  CLI::Option* software =
      sub->add_option("--software", options->software, "The profile to fit, a name or a file")
          ->needs(runs);
  runs->needs(software);
  sub->add_option("--numbers", options->numbers, "Its numbers to fit (those it lists as fitted)")
      ->delimiter(',')
      ->needs(runs);
  sub->add_option("--output", options->output, "File to write (see zerolab paths)");
  add_format(*sub, options->format, "table, md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return calibrate(*options); }; });
}

}  // namespace zl::cli
