// `zerolab bench nvme`: how fast files in a folder are, and the `aio` section that gets most of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/bytes.h"
#include "core/base/log.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/interrupt.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/progress.h"
#include "scenarios/machine/tune_files.h"

namespace zl::cli {
namespace {

struct NvmeOptions {
  FileTuningOptions tuning;
  std::string size = "256MiB";
  std::string format = "table";
};

Json setting_json(const FileRate& rate) {
  return {{"block_size", rate.aio.block_size},
          {"queue_depth", rate.aio.queue_depth},
          {"intra_op_parallelism", rate.aio.threads},
          {"read_bytes_per_second", rate.read},
          {"write_bytes_per_second", rate.write}};
}

Json tuning_json(const FileTuning& tuning, const std::string& folder) {
  Json settings = Json::array();
  for (const FileRate& rate : tuning.rates) settings.push_back(setting_json(rate));
  return {{"folder", folder},
          {"access", tuning.access},
          {"object_bytes", tuning.object_bytes},
          {"settings", std::move(settings)},
          {"best", setting_json(tuning.best)},
          {"recommended", Json::parse(aio_json(tuning.best.aio))}};
}

std::string rate_text(double bytes_per_second) {
  return fmt::format("{:.2f}", 1e-9 * bytes_per_second);
}

std::string tuning_text(const FileTuning& tuning, const std::string& folder) {
  Table table{{{"block size", Align::right, Unit::bytes},
               {"queue depth"},
               {"threads"},
               {"read GB/s"},
               {"write GB/s"}},
              {}};
  for (const FileRate& rate : tuning.rates) {
    table.rows.push_back({rate.aio.block_size, rate.aio.queue_depth, rate.aio.threads,
                          rate_text(rate.read), rate_text(rate.write)});
  }
  return fmt::format(
      "{} ({}), objects of {}\n\n{}\nrecommended, reads at {} GB/s and writes at {} GB/s:\n{}\n",
      folder, tuning.access, format_bytes(tuning.object_bytes), render(table, Format::table),
      rate_text(tuning.best.read), rate_text(tuning.best.write), aio_json(tuning.best.aio));
}

int nvme(NvmeOptions options) {
  const Format format = table_or_json(options.format);
  options.tuning.object_bytes = parse_bytes(options.size);
  options.tuning.stop = &stop_on_interrupt();
  std::optional<ProgressBar> bar;
  options.tuning.progress = [&bar](int done, int total) {
    if (!bar) bar.emplace("measuring", total);
    log_debug(fmt::format("measured {} of {} settings", done, total));
    bar->update(done);
  };
  const FileTuning tuning = tune_files(options.tuning);
  bar.reset();
  if (tuning.skipped > 0) {
    log_info(fmt::format(
        "{} settings were left out for lack of time; a smaller --size leaves time for them",
        tuning.skipped));
  }
  if (tuning.access.find("page cache") != std::string::npos) {
    log_warning("the page cache takes part: these are not the rates of the disk");
  }
  const std::string& folder = options.tuning.folder;
  print(format == Format::json ? pretty(tuning_json(tuning, folder)) : tuning_text(tuning, folder));
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* bench = app.add_subcommand("bench", "Measure parts of this machine");
  CLI::App* sub = bench->add_subcommand(
      "nvme", "Find the aio settings with which files in a folder are fastest (about 20 s)");
  const auto options = std::make_shared<NvmeOptions>();
  sub->add_option("folder", options->tuning.folder, "Folder on the disk to measure")
      ->capture_default_str();
  sub->add_option("--size", options->size, "Bytes of an object, at most; twice that is written")
      ->capture_default_str();
  add_format(*sub, options->format, "table or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return nvme(*options); }; });
}

}  // namespace zl::cli
