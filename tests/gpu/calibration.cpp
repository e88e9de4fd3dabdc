// Part f: `zerolab calibrate --backend cuda` writes the hardware profile; the step times it
// predicts against those that part d measured.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/files.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/process.h"
#include "tests/gpu/training.h"

namespace zl::gpu {
namespace {

// Of the step time. A wide limit: the profile is fitted on other models than those of part d.
constexpr double kAllowedError = 0.30;

// The figures of part d, or why there are none.
Json measured_models(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) {
    throw Error(ErrorCode::failed, "no figures of part d to compare with: run d and f together");
  }
  return Json::parse(read_file(path)).at("figures");
}

// What prices offload and compression, unless the profile has it measured: the data sheet.
void check_profile(const Json& profile, bool files, Report& report) {
  const Json& fitted = profile.at("calibration").at("by_ranks").at(0);
  const auto need = [&](const char* table, const char* key, const char* name) {
    const Json& rows = fitted.at(table);
    const bool found =
        std::any_of(rows.begin(), rows.end(), [&](const Json& row) { return row.at(key) == name; });
    if (!found) report.fail(std::string("the profile's ") + table + " lack " + name);
  };
  for (const char* op : {"sign_compress", "sign_average", "sign_unpack"}) need("ops", "op", op);
  need("host_ops", "op", "adam_step");
  for (const char* copy : {"host_to_device", "device_to_host"}) need("routes", "route", copy);
  if (!files) return;
  for (const char* transfer : {"file_to_host", "host_to_file"}) need("routes", "route", transfer);
}

Json compare(const Options& options, const TrainingShape& shape, const std::string& cluster,
             const Json& measured, double seconds) {
  const std::int64_t batch = measured.at("batch");
  const Json predicted =
      run_zerolab(options.zerolab, shape, "sim", batch, 4, seconds, {"--cluster", cluster});
  if (predicted.at("outcome") != "ok") {
    throw Error(ErrorCode::failed, std::string(shape.name) + ": the simulator says " +
                                       predicted.at("outcome").get<std::string>());
  }
  const double real = measured.at("median_step_seconds");
  const double step = predicted.at("step_time_seconds").at("median");
  return {{"batch", batch},
          {"measured_step_seconds", real},
          {"predicted_step_seconds", step},
          {"error", step / real - 1}};
}

}  // namespace

void run_calibration(Report& report, const Options& options) {
  const double deadline = now() + options.budget;
  const std::string profile = options.profile();
  std::vector<std::string> command = {options.zerolab, "calibrate", "--backend", "cuda", "--output",
                                      profile,         "-q",        "-o",        "json"};
  if (options.tiny) command.emplace_back("--tiny");
  const bool files = !options.nvme_path.empty();
  if (files) command.insert(command.end(), {"--nvme-path", options.nvme_path});
  run_program(command, 0.8 * options.budget);
  report.settings["allowed_error"] = kAllowedError;
  report.settings["compared_with"] =
      "the median steps of part d, of models that the calibration does not train";
  report.figures["profile"] = Json::parse(read_file(profile));
  check_profile(report.figures["profile"], files, report);
  const Json models = measured_models(options.throughput);
  double worst = 0;
  for (const TrainingShape& shape : training_shapes(options.tiny)) {
    if (!models.contains(shape.name)) continue;
    const Json& measured = models.at(shape.name).at("zerolab");
    const auto left = [&] { return std::max(1.0, deadline - now()); };
    Json entry = compare(options, shape, profile, measured, left());
    const double error = entry.at("error");
    worst = std::max(worst, std::abs(error));
    if (!options.tiny && std::abs(error) > kAllowedError) {
      report.fail(std::string(shape.name) + ": the predicted step is off by " +
                  signed_percent(error, 1));
    }
    report.figures["models"][shape.name] = std::move(entry);
  }
  if (!report.figures.contains("models")) {
    throw Error(ErrorCode::failed, "part d measured no model");
  }
  report.summary = "profile written; predicted steps of " +
                   std::to_string(report.figures["models"].size()) + " models within " +
                   signed_percent(worst, 1) + " of part d";
}

}  // namespace zl::gpu
