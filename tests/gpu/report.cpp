#include "tests/gpu/report.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>

#include "backends/cuda/availability.h"
#include "core/base/files.h"
#include "tests/gpu/facts.h"

namespace zl::gpu {
namespace {

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

void declare(CLI::App& app, Options& options) {
  app.add_option("--out", options.out, "File of the part's JSON");
  app.add_option("--budget", options.budget, "Seconds the part may take")->capture_default_str();
  app.add_option("--zerolab", options.zerolab, "The program zerolab");
  app.add_option("--python", options.python, "A Python with torch");
  app.add_option("--script", options.script, "pytorch_pair.py");
  app.add_option("--throughput", options.throughput, "The JSON of part d");
  app.add_option("--nvme-path", options.nvme_path, "Folder of the files to measure");
  app.add_option("--compile", options.compile, "torch.compile: block, full or none")
      ->check(CLI::IsMember({"block", "full", "none"}));
  app.add_flag("--quick", options.quick, "A short selection");
  app.add_flag("--tiny", options.tiny, "Toy sizes: tries the part itself and measures nothing");
}

void write(const std::string& path, const Json& json) {
  if (path.empty()) return;
  AtomicFile file(path);
  file.write(json.dump(1) + "\n");
  file.commit();
}

}  // namespace

std::string Options::profile() const {
  const auto folder = out.empty() ? std::filesystem::temp_directory_path()
                                  : std::filesystem::absolute(out).parent_path();
  return (folder / "local-cuda.json").string();
}

Json Report::json(double seconds) const {
  const bool skipped = !skipped_.empty();
  Json json = {{"schema", 1},
               {"part", part_},
               {"outcome", skipped             ? "skipped"
                           : failures_.empty() ? "passed"
                                               : "failed"},
               {"failures", failures_},
               {"date", now_utc()},
               {"seconds", seconds},
               {"settings", settings},
               {"figures", figures}};
  if (skipped) json["reason"] = skipped_;
  json.update(machine_);
  return json;
}

void Report::note_machine() { machine_ = machine_facts(); }

int Report::verdict() const {
  if (!skipped_.empty()) return kSkipped;
  return failures_.empty() ? 0 : 1;
}

int run_part(int argc, char** argv, const std::string& part,
             const std::function<void(Report&, const Options&)>& body) {
  Options options;
  CLI::App app("Part " + part + " of the acceptance run");
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  const auto start = std::chrono::steady_clock::now();
  Report report(part);
  report.settings["budget_seconds"] = options.budget;
  report.settings["quick"] = options.quick;
  if (options.tiny) report.settings["tiny"] = "toy sizes: these figures measure nothing";
  const std::string why = cuda::availability();
  if (!why.empty()) {
    report.skip("no usable GPU: " + why);
  } else {
    try {
      report.note_machine();  // first: after some failures CUDA answers nothing more
      body(report, options);
    } catch (const std::exception& error) {
      report.fail(error.what());
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  write(options.out, report.json(took.count()));
  for (const std::string& failure : report.failures()) std::cout << "failure: " << failure << "\n";
  std::cout << "summary: " << report.summary << std::endl;
  return report.verdict();
}

std::string signed_percent(double share, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.*f %%", digits, 100 * share);
  return text;
}

}  // namespace zl::gpu
