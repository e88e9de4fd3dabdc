// The dependency picture of the design: arrows point downwards only, and core's headers include the C++
// standard library and core only.
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
        found.push_back({fs::relative(entry.path(), root).string(), match[2], match[1] == "\"", header});
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
    return ok ? "" : include.file + " includes \"" + include.target + "\"";
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
      if (include.file == next && seen.insert(include.target).second) open.push_back(include.target);
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

TEST(Architecture, TheCheckSeesAnArrowThatPointsUp) {
  EXPECT_NE(violation({"core/zero/engine.cpp", "backends/cpu/world.h", true, false}), "");
  EXPECT_NE(violation({"backends/cpu/device.cpp", "simulator/world.h", true, false}), "");
  EXPECT_NE(violation({"results/store.cpp", "scenarios/runner.h", true, false}), "");
  EXPECT_NE(violation({"core/base/log.h", "fmt/core.h", false, true}), "");
  EXPECT_NE(violation({"core/base/files.h", "sys/mman.h", false, true}), "");
  EXPECT_NE(violation({"backends/cuda/device.h", "cuda_runtime.h", false, true}), "");
  EXPECT_EQ(violation({"backends/cuda/kernel/platform.h", "cuda_runtime.h", false, true}), "");
  EXPECT_EQ(violation({"scenarios/runner.cpp", "simulator/world.h", true, false}), "");
  EXPECT_EQ(violation({"core/base/files.cpp", "fcntl.h", false, false}), "");
}

TEST(Architecture, TheTopLevelIsTheDesigns) {
  const std::set<std::string> allowed{"CMakeLists.txt", "CMakePresets.json", "README.md", "lab",
                                      "core", "backends", "simulator", "gui", "scenarios",
                                      "results", "tests"};
  for (const auto& entry : fs::directory_iterator(ZL_SOURCE_DIR)) {
    const std::string name = entry.path().filename().string();
    if (name.front() == '.' || name.rfind("build", 0) == 0) continue;
    EXPECT_EQ(allowed.count(name), 1u) << name;
  }
}

}  // namespace
