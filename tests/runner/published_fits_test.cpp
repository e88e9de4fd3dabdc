// What the profiles of the catalogue say of their fits beside fits of today.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "scenarios/files/clusters.h"
#include "scenarios/published/fit_software.h"
#include "simulator/cluster/fitted_numbers.h"

namespace zl {
namespace {

// From the priors where the runs are quickly priced; what was fitted to hundreds of runs, or to
// large pipelines, goes on from where it ended.
const std::map<std::string, FitFrom> kFitted = {{"megatron-core", FitFrom::priors},
                                                {"deepspeed-2020", FitFrom::priors},
                                                {"deepspeed-zero3-2021", FitFrom::priors},
                                                {"deepspeed-zero3-2022", FitFrom::priors},
                                                {"megatron-deepspeed-2021", FitFrom::profile},
                                                {"torch-fsdp1-2023", FitFrom::profile}};

const SoftwareFit& refitted(const std::string& name) {
  static std::map<std::string, SoftwareFit> fits;
  if (const auto found = fits.find(name); found != fits.end()) return found->second;
  static const std::vector<PublishedRun> runs = catalog_published();
  const sim::Software profile = load_software(name);
  return fits[name] = fit_software(profile, runs, profile.fitted, kFitted.at(name));
}

// What a profile claims comes from fits that left out a source, or where a GPU has one only, a
// shape.
TEST(Published, BarsAreThoseOfWhatWasLeftOut) {
  for (const char* name : {"megatron-core", "deepspeed-2020"}) {
    const sim::Software profile = load_software(name);
    const SoftwareFit& fit = refitted(name);
    EXPECT_FALSE(fit.bars.empty());
    for (const auto& [generation, bar] : fit.bars) {
      ASSERT_TRUE(profile.knows(generation)) << name;
      EXPECT_GE(profile.step_errors.at(generation), 0.9 * bar) << name;
    }
    double inside = 0, all = 0;
    for (const LeftOut& each : fit.left_out) {
      const double bar = 1.645 * profile.step_errors.at(each.generation);
      for (const double error : each.errors) {
        inside += std::abs(error) <= bar ? 1 : 0;
        all += 1;
      }
    }
    EXPECT_GE(inside / all, 0.85) << name;
  }
}

// The catalogue's numbers, fitted and left out, are those that a fit finds today, as far as they
// are rounded: a change of what is predicted, or of a row, shows until they are fitted again.
TEST(Published, StoredNumbersAreThoseOfARefit) {
  constexpr double kRounded = 0.006;
  for (const auto& [name, from] : kFitted) {
    sim::Software profile = load_software(name);
    SoftwareFit fit = refitted(name);
    for (const std::string& key : profile.fitted) {
      const double stored = number_of(profile, key);
      EXPECT_NEAR(number_of(fit.software, key) / stored, 1, kRounded) << name << " " << key;
    }
    EXPECT_EQ(fit.left_out.size(), profile.left_out.size()) << name;
    for (const LeftOut& each : fit.left_out) {
      ASSERT_TRUE(profile.left_out.contains(each.group)) << name << ": " << each.group;
      const std::vector<double>& stored = profile.left_out.at(each.group);
      for (std::size_t i = 0; i < stored.size(); ++i) {
        EXPECT_NEAR(each.numbers[i] / stored[i], 1, kRounded)
            << name << ", without " << each.group << ": " << profile.fitted[i];
      }
    }
  }
}

}  // namespace
}  // namespace zl
