// The dependency picture of the design: arrows point downwards only, and core's headers include the
// C++ standard library and core only.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// Folder -> folders of the project it may include. The longest matching folder counts.
const std::map<std::string, std::vector<std::string>> kAllowed{
    {"core", {"core"}},
    {"backends", {"core", "backends"}},
    {"backends/cpu", {"core", "backends/cpu"}},
    {"backends/bootstrap", {"core", "backends/bootstrap"}},
    {"backends/cuda", {"core", "backends/bootstrap", "backends/cuda"}},
    {"backends/mpi", {"core", "backends/cpu", "backends/mpi"}},
    {"simulator", {"core", "simulator"}},
    {"results", {"core", "results"}},
    {"scenarios", {"core", "backends", "simulator", "results", "scenarios"}},
    {"gui", {"core", "simulator", "results", "scenarios", "gui"}},
};

// The floors of the core, lower first: a folder includes its own files and those of the floors
// below. `data` knows no other folder but base.
const std::vector<std::string> kFloors{
    "core/base",        // what everything is made of: bytes, types, shapes, views, errors
    "core/data",        // tokens from text; needs nothing of a device
    "core/ops",         // what is computed, as values
    "core/trace",       // what was computed, as values
    "core/device",      // the interface that runs ops
    "core/threads",     // help for those who implement it
    "core/rank",        // one rank's device with its books
    "core/parallel",    // who owns what among ranks
    "core/model",       // which ops a model is
    "core/optim",       // how owned weights are updated
    "core/offload",     // updated where, kept where: off the device
    "core/zero",        // sharded how, gathered and reduced when
    "core/checkpoint",  // all that state, in files
    "core/train",       // the composition: strategy, engine, program
};

int floor_of(const std::string& path) {
  for (std::size_t i = 0; i < kFloors.size(); ++i) {
    if (path.starts_with(kFloors[i] + "/")) return static_cast<int>(i);
  }
  return -1;
}

struct Include {
  std::string file, target;
  bool quoted = false;
  bool header = false;
};

std::vector<Include> includes_below(const fs::path& root) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> found;
  for (const auto& [folder, allowed] : kAllowed) {
    if (folder.find('/') != std::string::npos || !fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      const bool header = extension == ".h" || extension == ".cuh";
      if (!header && extension != ".cpp" && extension != ".cu") continue;
      std::ifstream in(entry.path());
      std::smatch match;
      for (std::string line; std::getline(in, line);) {
        if (!std::regex_search(line, match, pattern)) continue;
        found.push_back(
            {fs::relative(entry.path(), root).string(), match[2], match[1] == "\"", header});
      }
    }
  }
  return found;
}

bool below(const std::string& path, const std::string& folder) {
  return path.rfind(folder + "/", 0) == 0;
}

std::string rule_for(const std::string& file) {
  std::string best;
  for (const auto& [folder, allowed] : kAllowed) {
    if (below(file, folder) && folder.size() > best.size()) best = folder;
  }
  return best;
}

// A violation as text, empty when the include is allowed.
std::string violation(const Include& include) {
  static const std::set<std::string> kNotStandard{"unistd.h", "pthread.h"};
  if (include.quoted) {
    const auto& allowed = kAllowed.at(rule_for(include.file));
    const bool ok = std::any_of(allowed.begin(), allowed.end(), [&](const std::string& folder) {
      return below(include.target, folder);
    });
    const bool rises =
        below(include.file, "core") && floor_of(include.target) > floor_of(include.file);
    return ok && !rises ? "" : include.file + " includes \"" + include.target + "\"";
  }
  if (include.header && below(include.file, "core")) {
    // Standard headers have no folder and no suffix.
    const bool standard = include.target.find_first_of("/.") == std::string::npos;
    if (!standard || kNotStandard.count(include.target) != 0) {
      return include.file + " includes <" + include.target + ">";
    }
  }
  // Foreign libraries stay out of every header but these: kernel/ is for .cu files only, the tables
  // are of functions loaded at run time.
  static const std::regex foreign(
      R"(^(cuda|nccl|cublas|cudnn|mpi|sqlite3|SQLiteCpp|CLI|fmt/|spdlog|Eigen|liburing|dnnl))");
  static const std::set<std::string> tables{"backends/cuda/blas.h", "backends/cuda/cublaslt.h",
                                            "backends/cuda/nccl_library.h"};
  const bool own = below(include.file, "backends/cuda/kernel") || tables.count(include.file) != 0;
  if (include.header && !own && std::regex_search(include.target, foreign)) {
    return include.file + " (a header) includes <" + include.target + ">";
  }
  return "";
}

TEST(Architecture, IncludesPointDownwards) {
  const std::vector<Include> includes = includes_below(ZL_SOURCE_DIR);
  ASSERT_GT(includes.size(), 200u) << "the scan found too little to mean anything";
  for (const Include& include : includes) EXPECT_EQ(violation(include), "");
}

// The includes of a file of the project and of everything it includes.
std::set<std::string> closure(const std::vector<Include>& includes, const std::string& file) {
  std::set<std::string> seen{file};
  std::vector<std::string> open{file};
  while (!open.empty()) {
    const std::string next = open.back();
    open.pop_back();
    for (const Include& include : includes) {
      if (include.file == next && seen.insert(include.target).second)
        open.push_back(include.target);
    }
  }
  return seen;
}

TEST(Architecture, CudaStaysInItsBackend) {
  const std::vector<Include> includes = includes_below(ZL_SOURCE_DIR);
  for (const Include& include : includes) {
    if (below(include.file, "backends/cuda") || !below(include.target, "backends/cuda")) continue;
    EXPECT_FALSE(include.header) << include.file;
    for (const std::string& each : closure(includes, include.target)) {
      EXPECT_FALSE(each.starts_with("cuda") || each.starts_with("cublas") || each == "nccl.h")
          << include.file << " gets <" << each << "> through " << include.target;
    }
  }
  EXPECT_EQ(closure(includes, "backends/cuda/blas.h").count("cublasLt.h"), 1u);
}

TEST(Architecture, EveryFolderOfTheCoreHasAFloor) {
  for (const auto& entry : fs::directory_iterator(fs::path(ZL_SOURCE_DIR) / "core")) {
    if (!entry.is_directory()) continue;
    EXPECT_GE(floor_of("core/" + entry.path().filename().string() + "/x.h"), 0) << entry.path();
  }
}

TEST(Architecture, TheCheckSeesAnArrowThatPointsUp) {
  EXPECT_NE(violation({"core/ops/norm.h", "core/model/model_config.h", true, true}), "");
  EXPECT_NE(violation({"core/zero/weight_store.h", "core/train/strategy.h", true, true}), "");
  EXPECT_EQ(violation({"core/zero/weight_store.h", "core/zero/zero_config.h", true, true}), "");
  EXPECT_EQ(violation({"core/train/engine.cpp", "core/base/error.h", true, false}), "");
  EXPECT_NE(violation({"core/train/engine.cpp", "backends/cpu/world.h", true, false}), "");
  EXPECT_NE(violation({"backends/cpu/device.cpp", "simulator/world.h", true, false}), "");
  EXPECT_NE(violation({"results/store.cpp", "scenarios/run/runner.h", true, false}), "");
  EXPECT_NE(violation({"core/base/log.h", "fmt/core.h", false, true}), "");
  EXPECT_NE(violation({"core/base/files.h", "sys/mman.h", false, true}), "");
  EXPECT_NE(violation({"backends/cuda/device.h", "cuda_runtime.h", false, true}), "");
  EXPECT_EQ(violation({"backends/cuda/kernel/platform.h", "cuda_runtime.h", false, true}), "");
  EXPECT_EQ(violation({"scenarios/run/runner.cpp", "simulator/world.h", true, false}), "");
  EXPECT_EQ(violation({"core/base/files.cpp", "fcntl.h", false, false}), "");
}

TEST(Architecture, TheTopLevelIsTheDesigns) {
  const std::set<std::string> allowed{"CMakeLists.txt",
                                      "CMakePresets.json",
                                      "README.md",
                                      "CONTRIBUTING.md",
                                      "SECURITY.md",
                                      "LICENSE",
                                      "lab",
                                      "core",
                                      "backends",
                                      "simulator",
                                      "gui",
                                      "scenarios",
                                      "results",
                                      "tests"};
  for (const auto& entry : fs::directory_iterator(ZL_SOURCE_DIR)) {
    const std::string name = entry.path().filename().string();
    if (name.front() == '.' || name.rfind("build", 0) == 0) continue;
    EXPECT_EQ(allowed.count(name), 1u) << name;
  }
}

}  // namespace
