// `zerolab devices`: the processor, what its backend uses, and which backends there are.
#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "backends/cpu/file_storage.h"
#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/nearest.h"
#include "results/environment.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/run/cpu_backend.h"
#include "scenarios/run/cuda_backend.h"
#include "scenarios/run/runner.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace zl::cli {
namespace {

// The flags of /proc/cpuinfo that decide how fast the CPU backend is.
std::vector<std::string> instruction_sets() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && line.compare(0, 5, "flags") != 0) {
  }
  std::vector<std::string> found;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const bool amx = word.starts_with("amx_");
    if (word == "avx2" || word == "fma" || word == "avx512f" || word == "avx512_bf16" || amx) {
      found.push_back(word);
    }
  }
  return found;
}

const char* gemm_library() {
#ifdef ZL_WITH_ONEDNN
  return "oneDNN, Eigen (fp64) and packed kernels (16 bit)";
#else
  return "Eigen and packed kernels (for oneDNN: apt-get install libdnnl-dev, then build again)";
#endif
}

int openmp_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

// How the file tier would reach files in the working folder.
std::string file_access() {
  try {
    return cpu::describe_file_access(".");
  } catch (const Error& error) {
    return std::string("unknown: ") + error.what();
  }
}

Json backends_json(const BackendRegistry& registry) {
  Json list = Json::array();
  for (const std::string& name : registry.names()) {
    list.push_back({{"name", name}, {"available", true}, {"why", nullptr}});
  }
  for (const auto& [name, why] : registry.missing()) {
    list.push_back({{"name", name}, {"available", false}, {"why", why}});
  }
  return list;
}

// One row per GPU and the versions of the software; "" without a GPU, the reason is in the table of
// backends.
std::string cuda_text(const Json& cuda) {
  if (cuda["gpus"].empty()) return "";
  Table table{{{"GPU"},
               {"name", Align::left},
               {"memory", Align::right, Unit::bytes},
               {"multiprocessors"},
               {"compute capability"}},
              {}};
  for (const Json& gpu : cuda["gpus"]) {
    table.rows.push_back({static_cast<std::int64_t>(table.rows.size()),
                          gpu["name"].get<std::string>(), gpu["memory_bytes"].get<std::int64_t>(),
                          gpu["multiprocessors"].get<std::int64_t>(),
                          gpu["compute_capability"].get<std::string>()});
  }
  Json software = cuda;
  software.erase("gpus");
  software.erase("why");
  return "\n" + render(table, Format::table) + "\n" + render(leaves(software), Format::table);
}

std::string text_of(const Json& processor, const Json& backends, const Json& cuda) {
  Table table{{{"backend", Align::left}, {"available", Align::left}, {"why", Align::left}}, {}};
  for (const Json& each : backends) {
    const bool available = each["available"].get<bool>();
    table.rows.push_back({each["name"].get<std::string>(), std::string(available ? "yes" : "no"),
                          available ? Cell() : Cell(each["why"].get<std::string>())});
  }
  Json readable_processor = processor;
  readable_processor["memory_bytes"] = format_bytes(processor["memory_bytes"].get<std::int64_t>());
  return render(leaves(readable_processor), Format::table) + "\n" + render(table, Format::table) +
         cuda_text(cuda);
}

int devices(const std::string& format_text) {
  const Format format = table_or_json(format_text);
  const Environment environment = detect_environment();
  Json all = {{"cpu", environment.cpu},
              {"cores", environment.cores},
              {"memory_bytes", environment.memory_bytes},
              {"instruction_sets", instruction_sets()},
              {"gemm", gemm_library()},
              {"openmp_threads", openmp_threads()},
              {"communicators", describe_communicators()},
              {"files", file_access()}};
  const Runner runner;
  const Json backends = backends_json(runner.backends());
  const Json cuda = describe_cuda();
  if (format == Format::table) {
    all["instruction_sets"] = join(instruction_sets(), " ");
    print(text_of(all, backends, cuda));
  } else {
    all["backends"] = backends;
    all["cuda"] = cuda;
    print(pretty(all));
  }
  return 0;
}

}  // namespace

void add_devices(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("devices", "This machine and the backends it can use");
  const auto format = std::make_shared<std::string>("table");
  add_format(*sub, *format, "table or json");
  add_verbosity(*sub);
  sub->callback([format, &action] { action = [format] { return devices(*format); }; });
}

}  // namespace zl::cli
