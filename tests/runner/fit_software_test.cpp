// Profiles fitted to runs whose truth is known: the predictions of another profile.
#include "scenarios/published/fit_software.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "scenarios/files/clusters.h"
#include "scenarios/published/record_published.h"
#include "scenarios/published/validate.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

const std::vector<std::string> kKeys = {"kernels.gemm", "host.op_seconds"};

// Steps of small and large models from two sources on A100, one of them composed of operators.
std::vector<PublishedRun> runs_of(const std::string& software) {
  std::string text =
      "id,source,software,gpu,n_gpus,layers,hidden,heads,seq,micro_batch,measured_quantity,value,"
      "unit,kind\n";
  int id = 0;
  for (const char* source : {"first", "second"}) {
    for (const char* shape : {"8,512,8,256,1", "8,512,8,256,4", "4,4096,32,1024,4"}) {
      for (const char* ranks : {"1", "8"}) {
        text += std::to_string(id++) + "," + source + "," + software + ",a100-80," + ranks + "," +
                shape + ",iteration_time,1,s,\n";
      }
    }
  }
  text += "99,second," + software + ",a100-80,8,8,512,8,256,1,iteration_time,99,s,composed\n";
  return read_published(text, "runs.csv");
}

sim::Software with_numbers(sim::Software software, double gemm, double op_seconds) {
  software.gemm = gemm;
  software.op_seconds = op_seconds;
  return software;
}

// What a profile predicts of the runs becomes what was measured.
void measure_with(const sim::Software& truth, std::vector<PublishedRun>& runs) {
  for (PublishedRun& run : runs) {
    if (run.kind == TimeKind::composed) continue;
    Expressed expressed = express(run);
    Scenario plain = *expressed.scenario;
    plain.run.software = kOwnSoftware;
    run.value = price_published(record_published(std::move(*expressed.scenario)),
                                with_software(scenario_cluster(plain), truth, plain.model))
                    .seconds;
    run.values = {run.value};
  }
}

void scale(PublishedRun& run, double factor) {
  run.value *= factor;
  for (double& value : run.values) value *= factor;
}

TEST(FitSoftware, FindsTheNumbersThatTheRunsWereMadeWith) {
  const sim::Software profile = load_software("torch-ddp");
  std::vector<PublishedRun> runs = runs_of(profile.name);
  measure_with(with_numbers(profile, 0.8, 2e-5), runs);
  const SoftwareFit fit = fit_software(profile, runs, kKeys);
  EXPECT_EQ(fit.rows, 12U) << "a step composed of operators is no measured one";
  EXPECT_NEAR(fit.software.gemm, 0.8, 0.03);
  EXPECT_NEAR(fit.software.op_seconds, 2e-5, 1e-6);
  EXPECT_LT(fit.error, 0.03);
  EXPECT_EQ(fit.software.memory, profile.memory) << "a number that is not fitted stays";
  ASSERT_EQ(fit.left_out.size(), 2U);
  for (const LeftOut& each : fit.left_out) {
    EXPECT_EQ(each.errors.size(), 6U);
    for (const double error : each.errors) EXPECT_LT(std::abs(error), 0.05) << each.group;
  }
  EXPECT_TRUE(fit.bars.contains(sim::Generation::ampere));
}

// The bar comes from what each source's rows are off by in the fit without them.
TEST(FitSoftware, BarsAreOfSourcesThatWereLeftOut) {
  const sim::Software profile = load_software("torch-ddp");
  std::vector<PublishedRun> runs = runs_of(profile.name);
  measure_with(with_numbers(profile, 0.9, 1e-5), runs);
  for (PublishedRun& run : runs) scale(run, run.source == "second" ? 1.5 : 1);
  const SoftwareFit fit = fit_software(profile, runs, kKeys);
  ASSERT_EQ(fit.left_out.size(), 2U);
  // Each source is off by half of the other: what fits both at once is nearer to each.
  EXPECT_LT(fit.error, std::log(1.5));
  for (const LeftOut& each : fit.left_out) {
    const double mean = std::accumulate(each.errors.begin(), each.errors.end(), 0.0) / 6;
    EXPECT_NEAR(std::abs(mean), std::log(1.5), 0.12) << each.group;
  }
  EXPECT_GT(fit.bars.at(sim::Generation::ampere), 0.2);
}

// The median is fitted, and the bar holds nine in ten of all that was measured.
TEST(FitSoftware, BarsAreOfEveryMeasurement) {
  const sim::Software profile = load_software("torch-ddp");
  std::vector<PublishedRun> runs = runs_of(profile.name);
  measure_with(with_numbers(profile, 0.9, 1e-5), runs);
  const double before = fit_software(profile, runs, kKeys).bars.at(sim::Generation::ampere);
  for (PublishedRun& run : runs) run.values = {run.value / 1.4, run.value, run.value * 1.4};
  const SoftwareFit fit = fit_software(profile, runs, kKeys);
  EXPECT_NEAR(fit.software.gemm, 0.9, 0.03);
  EXPECT_LT(before, 0.05);
  EXPECT_NEAR(fit.bars.at(sim::Generation::ampere), std::log(1.4) / 1.645, 0.05);
}

// A fit writes down what each group is predicted with where it was left out; `validate` goes by it.
TEST(FitSoftware, WhatIsLeftOutIsPredictedByTheOthers) {
  const test::TempFolder folder;
  sim::Software profile = load_software("torch-ddp");
  std::vector<PublishedRun> runs = runs_of(profile.name);
  measure_with(with_numbers(profile, 0.9, 1e-5), runs);
  for (PublishedRun& run : runs) scale(run, run.source == "second" ? 1.3 : 1);
  const SoftwareFit fit = fit_software(profile, runs, kKeys);
  const std::string file = (folder / "mine.json").string();
  std::ofstream(file) << fitted_text(software_text("torch-ddp"), fit, kKeys);
  for (PublishedRun& run : runs) run.software = file;
  EXPECT_EQ(load_software(file).techniques, fit.techniques);
  EXPECT_FALSE(fit.techniques.empty());
  const std::vector<Judged> judged = judge_published(runs);
  for (const LeftOut& group : fit.left_out) {
    std::size_t next = 0;
    for (const Judged& each : judged) {
      if (each.run->kind == TimeKind::composed) continue;
      if (!group.group.starts_with(each.run->source)) continue;
      EXPECT_NEAR(std::log(each.measured / each.left_out), group.errors[next++], 0.01);
    }
    EXPECT_EQ(next, 6U) << group.group;
  }
  const Accuracy all = accuracy_of_kind(judged, TimeKind::measured);
  ASSERT_TRUE(all.left_out);
  EXPECT_GT(all.left_out->mape, all.mape);
}

// What the profile has from its base is not lost: the error of what no run supports, and that its
// reserve was fitted.
TEST(FitSoftware, AProfileThatBeginsFromAnotherIsReadAgain) {
  const test::TempFolder folder;
  const sim::Software profile = load_software("torch-fsdp2-compile");
  ASSERT_EQ(profile.base, "torch-fsdp2");
  std::vector<PublishedRun> runs = runs_of(profile.name);
  measure_with(with_numbers(profile, 0.8, 1e-5), runs);
  const std::string file = (folder / "mine.json").string();
  std::ofstream(file) << fitted_text(software_text(profile.name),
                                     fit_software(profile, runs, kKeys), kKeys);
  const sim::Software mine = load_software(file);
  EXPECT_NEAR(mine.gemm, 0.8, 0.03);
  EXPECT_NEAR(mine.op_seconds / 1e-5, 1, 0.1);
  EXPECT_EQ(mine.fitted, kKeys);
  EXPECT_EQ(mine.fits_reserve, profile.fits_reserve);
  EXPECT_EQ(mine.step_error, profile.step_error);
  EXPECT_TRUE(mine.knows(sim::Generation::ampere));
  EXPECT_FALSE(mine.knows(sim::Generation::hopper)) << "a bar of another fit";
}

TEST(FitSoftware, NumbersStayInTheirRangeAndBeginAtThePriors) {
  sim::Software profile = load_software("torch-ddp");
  std::vector<PublishedRun> runs = runs_of(profile.name);
  measure_with(with_numbers(profile, 0.9, 2e-5), runs);
  for (PublishedRun& run : runs) scale(run, 0.8);  // no product is as fast
  const SoftwareFit fast = fit_software(profile, runs, {"kernels.gemm"});
  EXPECT_EQ(fast.software.gemm, 1);
  // No run tells what only several nodes have.
  profile.priors["communication.inter"] = 0.7;
  measure_with(with_numbers(profile, 0.9, 2e-5), runs);
  const SoftwareFit fit = fit_software(profile, runs, {"communication.inter", "kernels.gemm"});
  EXPECT_NEAR(fit.software.inter, 0.7, 1e-9);
}

TEST(FitSoftware, WithoutARunItSaysSo) {
  const std::vector<PublishedRun> runs = runs_of("torch-ddp");
  try {
    fit_software(load_software("llm.c"), runs, kKeys);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_NE(std::string(error.what()).find("no run of \"llm.c\""), std::string::npos);
  }
}

TEST(FitSoftware, AnUnknownNumberNamesTheNearest) {
  try {
    fit_software(load_software("torch-ddp"), runs_of("torch-ddp"), {"kernels.gemmm"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the nearest is \"kernels.gemm\""), std::string::npos)
        << error.what();
  }
}

// Faster than its FLOPs take at the peak of the data sheet: the row names another GPU than ran.
TEST(FitSoftware, ARunFasterThanThePeakIsNoneOfThisGpu) {
  std::vector<PublishedRun> runs = runs_of("torch-ddp");
  measure_with(load_software("torch-ddp"), runs);
  scale(runs[5], 0.01);
  const std::vector<Judged> judged = judge_published(runs);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    EXPECT_EQ(judged[i].is_impossible(), i == 5) << i;
  }
  EXPECT_NE(judged[5].why_not.find("faster than the peak"), std::string::npos);
  EXPECT_EQ(fit_software(load_software("torch-ddp"), runs, kKeys).rows, 11U);
  EXPECT_EQ(accuracy_of_kind(judged, TimeKind::measured).rows, 11);
  EXPECT_EQ(accuracy_of_kind(judged, TimeKind::composed).rows, 1);
}

}  // namespace
}  // namespace zl
