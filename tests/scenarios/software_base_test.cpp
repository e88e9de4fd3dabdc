// Profiles that begin from another.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "scenarios/files/catalog.h"
#include "scenarios/files/clusters.h"
#include "simulator/cluster/fitted_numbers.h"
#include "tests/scenarios/message.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

class SoftwareBase : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& keys) {
    std::string file = (folder_ / (name + ".json")).string();
    std::ofstream(file) << R"({"schema": 2, "name": ")" << name << R"(", )" << keys << "}";
    return file;
  }

 private:
  test::TempFolder folder_;
};

TEST_F(SoftwareBase, SaysWhatTheFileDoesNot) {
  const std::string base =
      write("base", R"("kernels": {"gemm": 0.9, "memory": 0.8, "ops": {"gemm": {"kernels": 2}}},
                       "step_error": {"unsupported": 0.3, "ampere": 0.1}, "x-source": "benchmarks",
                       "fitted": ["kernels.gemm"], "left_out": {"a, ampere": [0.95]})");
  const std::string from = R"("base": ")" + base + '"';
  const sim::Software same =
      load_software(write("same", from + R"(, "kernels": {"memory": 0.7, "ops": {"gemm": null}})"));
  EXPECT_EQ(same.name, "same");
  EXPECT_EQ(same.base, base);
  EXPECT_EQ(same.gemm, 0.9);
  EXPECT_EQ(same.memory, 0.7);
  EXPECT_EQ(same.kernels.ops, sim::SoftwareKernels().ops) << "null takes away";
  EXPECT_EQ(same.left_out.size(), 1U) << "it has the fitted numbers of its base";
  EXPECT_TRUE(same.knows(sim::Generation::ampere));
  EXPECT_FALSE(software_json(write("noted", from)).contains("x-source"));
  const sim::Software own = load_software(
      write("own", from + R"(, "step_error": {"unsupported": 0.4}, "fitted": ["kernels.memory"])"));
  EXPECT_TRUE(own.left_out.empty()) << "its own numbers are of another fit";
  EXPECT_FALSE(own.knows(sim::Generation::ampere));
}

TEST_F(SoftwareBase, ThatIsNoneIsNamed) {
  const std::string keys = R"("step_error": {"unsupported": 0.3}, "base": )";
  EXPECT_CONTAINS(message_of([&] { load_software(write("a", keys + "3")); }),
                  "a.json: software.base: 3 is not a");
  EXPECT_CONTAINS(message_of([&] { load_software(write("a", keys + R"("torch-fsdp3")")); }),
                  "torch-fsdp2");
  const std::string itself = write("circle", "");
  write("circle", keys + '"' + itself + '"');
  EXPECT_CONTAINS(message_of([&] { load_software(itself); }),
                  "software.base: profiles begin from each other");
}

TEST(SoftwareCatalog, EveryProfileIsNamedAsItIsAndPhysical) {
  for (const std::string& name : catalog_names("software")) {
    sim::Software software = load_software(name);
    EXPECT_EQ(software.name, name);
    EXPECT_LE(software.fitted.size() + (software.fits_reserve ? 1 : 0), 12U);
    for (const std::string& key : software.fitted) {
      const sim::FittedNumber& number = sim::range_of(key);
      EXPECT_GE(number_of(software, key), number.least) << name << key;
      EXPECT_LE(number_of(software, key), number.most) << name << key;
    }
  }
  EXPECT_GE(catalog_names("software").size(), 14U);
}

// All that have a launch file, and those whose papers say.
TEST(SoftwareCatalog, ProfilesSayWhatTheyCanBeToldToDo) {
  for (const char* name :
       {"deepspeed", "deepspeed-zero3-2021", "deepspeed-zero3-2022", "megatron-core",
        "megatron-core-unfused", "megatron-deepspeed-2021", "torch-ddp", "torch-fsdp1-2023",
        "torch-fsdp2", "torch-fsdp2-compile", "llm.c"}) {
    EXPECT_TRUE(load_software(name).abilities) << name;
  }
  EXPECT_FALSE(load_software("zerolab").abilities);
}

}  // namespace
}  // namespace zl
