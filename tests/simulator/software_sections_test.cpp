// Sections of a software's profile: what fits left out, and what it can be told to do.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "simulator/cluster/fitted_numbers.h"
#include "simulator/cluster/software.h"

namespace zl::sim {
namespace {

Software profile(const std::string& section) {
  return parse_software(R"({"schema": 2, "name": "half", "kernels": {"gemm": 0.85},
      "step_error": {"unsupported": 0.3}, "fitted": ["kernels.gemm"], )" +
                            section + "}",
                        "half.json");
}

std::string refusal(const std::string& section) {
  try {
    profile(section);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "no error";
}

TEST(SoftwareSections, KeepTheNumbersOfFitsThatLeftAGroupOut) {
  const Software half = profile(R"("left_out": {"a paper, ampere": [0.9]})");
  EXPECT_EQ(fitted_without(half, "a paper, ampere")->gemm, 0.9);
  EXPECT_EQ(fitted_without(half, "a paper, ampere")->memory, half.memory);
  EXPECT_FALSE(fitted_without(half, "another, ampere"));
  EXPECT_EQ(refusal(R"("left_out": {"x": [0.9, 1]})"),
            "half.json: software.left_out.x: is no list of a number for each fitted one");
  EXPECT_EQ(refusal(R"("left_out": {"x": [0.1]})"),
            "half.json: software.left_out.x: is outside what public benchmarks show");
  EXPECT_EQ(refusal(R"("left_out": [])"),
            "half.json: software.left_out: is no object of lists of numbers");
}

TEST(SoftwareSections, SayWhatItCanBeToldToDo) {
  using Abilities = SoftwareAbilities;
  const auto few = profile(R"("abilities": {"stages": [0, 1]})").abilities;
  ASSERT_TRUE(few);
  EXPECT_EQ(few->stages, (std::vector<int>{0, 1}));
  EXPECT_FALSE(few->tensor || few->copies);
  EXPECT_EQ(few->pipelines, Abilities::Pipelines::none);
  EXPECT_EQ(few->recompute, Abilities::Recompute::blocks);
  const auto many = profile(R"("abilities": {"tensor": true, "copies": true, "stages": [0],
      "pipelines": "megatron", "pipeline_stages": [1], "offload": "whole-stage-3",
      "recompute": "megatron-2021"})")
                        .abilities;
  EXPECT_TRUE(many->tensor && many->copies);
  EXPECT_EQ(many->pipelines, Abilities::Pipelines::megatron);
  EXPECT_EQ(many->pipeline_stages, std::vector<int>{1});
  EXPECT_EQ(many->offload, Abilities::Offload::whole_stage_3);
  EXPECT_EQ(many->recompute, Abilities::Recompute::megatron_2021);
  EXPECT_FALSE(profile(R"("x-note": 0)").abilities) << "no limits";
  EXPECT_EQ(
      refusal(R"("abilities": {"stages": [0], "offload": "all"})"),
      "half.json: software.abilities.offload: \"all\" is not one of none, whole-stage-3, any");
  EXPECT_EQ(refusal(R"("abilities": {"stages": [4]})"),
            "half.json: software.abilities.stages: 4 is not one of 0, 1, 2, 3");
}

}  // namespace
}  // namespace zl::sim
