// The regressions of the fuzz targets, under any compiler: none ends the process.
#include <gtest/gtest.h>

#include <map>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/targets.h"

namespace zl::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = ZL_SOURCE_DIR "/tests/fuzz/corpus";

class FuzzCorpus : public testing::TestWithParam<Target> {};

TEST_P(FuzzCorpus, IsHandled) {
  std::size_t inputs = 0;
  for (const auto& entry : fs::directory_iterator(kCorpus / GetParam().name)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    std::fprintf(stderr, "%s\n", entry.path().filename().c_str());
    GetParam().test(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++inputs;
  }
  EXPECT_GT(inputs, 0u) << "a target without a regression; commit one input";
}

// Files, too: a parser under another one's input must refuse it.
TEST_P(FuzzCorpus, OfTheOthersIsHandled) {
  for (const auto& entry : fs::recursive_directory_iterator(kCorpus)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    GetParam().test(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus, testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(FuzzTargets, EveryCorpusHasOne) {
  for (const auto& entry : fs::directory_iterator(kCorpus)) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(std::any_of(std::begin(kTargets), std::end(kTargets), [&](const Target& target) {
      return target.name == name;
    })) << name;
  }
}

}  // namespace
}  // namespace zl::fuzz
