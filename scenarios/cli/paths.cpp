// `zerolab paths`: where zerolab keeps its files.
#include "results/paths.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/files/clusters.h"

namespace zl::cli {
namespace {

int paths(const std::string& format_text) {
  const Format format = table_or_json(format_text);
  const Json all = {{"config", config_folder().string()},
                    {"data", data_folder().string()},
                    {"cache", cache_folder().string()},
                    {"database", database_path().string()},
                    {"local_cluster", local_cluster_path()},
                    {"local_cuda_cluster", local_cluster_path("local-cuda")}};
  print(format == Format::json ? pretty(all) : render(leaves(all), format));
  return 0;
}

}  // namespace

void add_paths(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("paths", "Where zerolab keeps its files");
  const auto format = std::make_shared<std::string>("table");
  add_format(*sub, *format, "table or json");
  add_verbosity(*sub);
  sub->callback([format, &action] { action = [format] { return paths(*format); }; });
}

}  // namespace zl::cli
