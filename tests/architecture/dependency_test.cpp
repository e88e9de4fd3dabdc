// The dependency picture of the design: arrows point downwards only, and core's headers include the
// C++ standard library and core only.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
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
    {"backends/mpi", {"core", "backends/bootstrap", "backends/cpu", "backends/mpi"}},
    {"simulator", {"core", "simulator"}},
    {"simulator/json", {"core", "simulator/json"}},
    {"results", {"core", "simulator/json", "results"}},
    {"scenarios", {"core", "backends", "simulator", "results", "scenarios"}},
    {"gui", {"core", "simulator", "results", "scenarios", "gui"}},
};

// The floors of a top-level folder, lower first: a folder includes its own files and those of the
// floors below; folders in one set do not know each other.
using Floors = std::vector<std::set<std::string>>;

const Floors kCoreFloors{
    {"core/base"},        // what everything is made of: bytes, types, shapes, views, errors
    {"core/data"},        // tokens from text; needs nothing of a device
    {"core/ops"},         // what is computed, as values
    {"core/trace"},       // what was computed, as values
    {"core/device"},      // the interface that runs ops
    {"core/threads"},     // help for those who implement it
    {"core/parallel"},    // which ranks form groups, and who owns what among them
    {"core/rank"},        // one rank's device and groups, with its books
    {"core/model"},       // which ops a model is
    {"core/optim"},       // how owned weights are updated
    {"core/offload"},     // updated where, kept where: off the device
    {"core/zero"},        // sharded how, gathered and reduced when
    {"core/checkpoint"},  // all that state, in files
    {"core/pipeline"},    // in which order micro-batches pass the units
    {"core/inference"},   // the forward alone, with a cache
    {"core/train"},       // the composition: strategy, engine, program
};

// Below all of them: simulator/json, the one strict reader.
const Floors kScenarioFloors{
    {"scenarios/deepspeed"},  // what a DeepSpeed configuration means
    {"scenarios/files"},      // everything a person writes, as values
    {"scenarios/weights",     // what models of other programs are, as files
     "scenarios/launch"},     // and how other programs are told to train them
    {"scenarios/run"},        // one strategy on one backend
    {"scenarios/machine", "scenarios/planner", "scenarios/published"},  // what many runs say
    {"scenarios/report"},                                               // and pages of it
    {"scenarios/cli"},                                                  // the program
};

struct Place {
  int floor = -1;
  std::string folder;
};

Place place_of(const Floors& floors, const std::string& path) {
  for (std::size_t i = 0; i < floors.size(); ++i) {
    for (const std::string& folder : floors[i]) {
      if (path.starts_with(folder + "/")) return {static_cast<int>(i), folder};
    }
  }
  return {};
}

bool rises(const Floors& floors, const std::string& file, const std::string& target) {
  const Place from = place_of(floors, file), to = place_of(floors, target);
  return from.floor >= 0 && to.floor >= 0 && from.folder != to.folder && to.floor >= from.floor;
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
    const bool up = rises(kCoreFloors, include.file, include.target) ||
                    rises(kScenarioFloors, include.file, include.target);
    return ok && !up ? "" : include.file + " includes \"" + include.target + "\"";
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
      R"(^(cuda|nccl|cublas|cudnn|mpi|sqlite3|SQLiteCpp|CLI|fmt/|spdlog|Eigen|liburing|dnnl|toml))");
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

TEST(Architecture, QtStaysInTheDashboard) {
  const std::regex qt("^Q[A-Zt]");
  int inside = 0;
  for (const Include& include : includes_below(ZL_SOURCE_DIR)) {
    if (include.quoted || !std::regex_search(include.target, qt)) continue;
    EXPECT_TRUE(below(include.file, "gui"))
        << include.file << " includes <" << include.target << ">";
    ++inside;
  }
  EXPECT_GT(inside, 50);
}

// Whether something fits and what it costs is decided below the dashboard.
TEST(Architecture, TheDashboardAsksThePlannerAndTheRunner) {
  const std::set<std::string> deeper{"scenarios/run/simulate.h", "scenarios/run/judge.h",
                                     "simulator/world.h", "core/train/engine.h"};
  for (const Include& include : includes_below(ZL_SOURCE_DIR)) {
    if (!below(include.file, "gui")) continue;
    EXPECT_EQ(deeper.count(include.target), 0u) << include.file << ": " << include.target;
  }
}

// Tests run several at a time: a name of their own under the temporary folder is one that two of
// them share.
TEST(Architecture, TestsTakeTheirFoldersFromOneClass) {
  const std::regex hand_made(R"(temp_directory_path|mkdtemp|TempDir\(\)\)? *[+/])");
  const fs::path tests = fs::path(ZL_SOURCE_DIR) / "tests";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(tests)) {
    const fs::path& path = entry.path();
    if (path.extension() != ".cpp" && path.extension() != ".h") continue;
    if (path.filename() == "temp_folder.h" || path.filename() == "dependency_test.cpp") continue;
    if (path.parent_path() == tests / "gpu") continue;  // a program that is carried elsewhere
    ++files;
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_FALSE(std::regex_search(text, hand_made))
        << path << ": use test::TempFolder of tests/temp_folder.h";
  }
  EXPECT_GT(files, 150);
}

TEST(Architecture, EveryFolderHasAFloor) {
  for (const auto& [top, floors] :
       {std::pair{"core", kCoreFloors}, std::pair{"scenarios", kScenarioFloors}}) {
    for (const auto& entry : fs::directory_iterator(fs::path(ZL_SOURCE_DIR) / top)) {
      if (!entry.is_directory() || entry.path().filename() == "catalog") continue;  // only data
      const std::string file = top + ("/" + entry.path().filename().string()) + "/x.h";
      EXPECT_GE(place_of(floors, file).floor, 0) << entry.path();
    }
  }
}

// A header and its .cpp file are one unit: "scenarios/run/runner".
std::string unit_of(const std::string& path) { return path.substr(0, path.rfind('.')); }

// The units of a circle of includes, empty where there is none.
std::vector<std::string> circle(const std::vector<Include>& includes, const std::string& folder) {
  std::map<std::string, std::set<std::string>> uses;
  for (const Include& include : includes) {
    const std::string from = unit_of(include.file), to = unit_of(include.target);
    if (from != to && below(from, folder) && below(to, folder)) uses[from].insert(to);
  }
  // Units that use nothing that is left cannot be in a circle.
  for (bool changed = true; changed;) {
    changed = false;
    for (auto each = uses.begin(); each != uses.end();) {
      std::erase_if(each->second, [&](const std::string& used) { return !uses.contains(used); });
      changed = changed || each->second.empty();
      each = each->second.empty() ? uses.erase(each) : std::next(each);
    }
  }
  std::vector<std::string> path;
  if (uses.empty()) return path;
  for (std::string unit = uses.begin()->first;; unit = *uses.at(unit).begin()) {
    const auto seen = std::find(path.begin(), path.end(), unit);
    if (seen != path.end()) return {seen, path.end()};
    path.push_back(unit);
  }
}

TEST(Architecture, NoUnitsOfScenariosIncludeEachOtherInACircle) {
  EXPECT_EQ(circle(includes_below(ZL_SOURCE_DIR), "scenarios"), std::vector<std::string>{});
}

TEST(Architecture, TheCheckSeesACircle) {
  const std::vector<Include> straight{
      {"scenarios/run/a.cpp", "scenarios/run/a.h", true, false},
      {"scenarios/run/a.cpp", "scenarios/run/b.h", true, false},
      {"scenarios/run/b.h", "scenarios/files/c.h", true, true},
  };
  EXPECT_TRUE(circle(straight, "scenarios").empty());
  std::vector<Include> bent = straight;
  bent.push_back({"scenarios/files/c.cpp", "scenarios/run/a.h", true, false});
  EXPECT_EQ(circle(bent, "scenarios").size(), 3u);
}

TEST(Architecture, TheCheckSeesAnArrowThatPointsUp) {
  EXPECT_NE(violation({"core/ops/norm.h", "core/model/model_config.h", true, true}), "");
  EXPECT_NE(violation({"core/zero/weight_store.h", "core/train/strategy.h", true, true}), "");
  EXPECT_EQ(violation({"core/zero/weight_store.h", "core/zero/zero_config.h", true, true}), "");
  EXPECT_EQ(violation({"core/train/engine.cpp", "core/base/error.h", true, false}), "");
  EXPECT_NE(violation({"core/train/engine.cpp", "backends/cpu/world.h", true, false}), "");
  EXPECT_NE(violation({"backends/cpu/device.cpp", "simulator/world.h", true, false}), "");
  EXPECT_NE(violation({"results/store.cpp", "scenarios/run/runner.h", true, false}), "");
  EXPECT_NE(violation({"scenarios/files/scenario.cpp", "scenarios/run/runner.h", true, false}), "");
  EXPECT_NE(violation({"scenarios/deepspeed/import.h", "scenarios/files/catalog.h", true, true}),
            "");
  EXPECT_NE(violation({"scenarios/machine/calibrate.h", "scenarios/report/show.h", true, true}),
            "");
  EXPECT_NE(violation({"scenarios/run/runner.h", "scenarios/cli/options.h", true, true}), "");
  EXPECT_EQ(violation({"scenarios/report/show.cpp", "scenarios/run/runner.h", true, false}), "");
  EXPECT_NE(violation({"simulator/json/reading.h", "simulator/world.h", true, true}), "");
  EXPECT_EQ(violation({"scenarios/deepspeed/keys.h", "simulator/json/reading.h", true, true}), "");
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
