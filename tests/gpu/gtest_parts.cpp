// The parts that are GoogleTest suites: their verdicts become the part's JSON.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "tests/gpu/gtest_figures.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/process.h"

namespace zl::gpu {

Json& figures() {
  static Json all = Json::object();
  return all;
}

bool& is_tiny() {
  static bool tiny = false;
  return tiny;
}

namespace {

class Listener : public testing::EmptyTestEventListener {
 public:
  // No test is started after `deadline`: what is killed leaves no figures.
  Listener(Report& report, double deadline) : report_(report), deadline_(deadline) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed() || !first_.empty()) return;
    first_ = part.summary();
    first_.resize(
        std::min(first_.size(), first_.find("\nGoogle Test trace:")));  // paths of a build
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    const std::string name = std::string(test.test_suite_name()) + "." + test.name();
    if (test.result()->Failed()) report_.fail(name + ": " + first_);
    if (test.result()->Skipped()) skipped_.push_back(name);
    for (int i = 0; i < test.result()->test_property_count(); ++i) {
      const testing::TestProperty& property = test.result()->GetTestProperty(i);
      if (std::string_view(property.key()) == "of_tolerance") {
        figures()["of_tolerance"][name] = std::strtod(property.value(), nullptr);
      }
    }
    first_.clear();
    const int all = testing::UnitTest::GetInstance()->test_to_run_count();
    if (++done_ == all || now() < deadline_) return;
    report_.fail("time is up: " + std::to_string(done_) + " of " + std::to_string(all) +
                 " tests ran");
    OnTestProgramEnd(*testing::UnitTest::GetInstance());
    throw Error(ErrorCode::failed, "time is up");  // GoogleTest ends the run
  }
  void OnTestProgramEnd(const testing::UnitTest& all) override {
    figures()["tests"] = all.test_to_run_count();
    figures()["failed"] = all.failed_test_count();
    figures()["skipped"] = skipped_;
    figures()["seed"] = all.random_seed();
  }

  Report& report_;
  double deadline_;
  int done_ = 0;
  std::string first_;
  std::vector<std::string> skipped_;
};

// Runs the tests whose full names match the filter, which the command line may have narrowed.
void run_tests(Report& report, const Options& options, const char* filter) {
  if (GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, filter);
  testing::UnitTest& all = *testing::UnitTest::GetInstance();
  all.listeners().Append(new Listener(report, now() + options.budget));
  const int status = RUN_ALL_TESTS();
  report.figures = figures();
  if (status != 0 && report.failures().empty()) {
    report.fail("the test program failed outside of its tests");
  }
  if (all.test_to_run_count() == 0) report.fail("no test was selected");
  report.summary = std::to_string(all.test_to_run_count()) + " tests, " +
                   std::to_string(all.failed_test_count()) + " failed, " +
                   std::to_string(all.skipped_test_count()) + " skipped";
}

}  // namespace

// The suites of equality_test.cpp have Gpu in their names, those of the table and the collectives
// do not. Attention is most of the table's time where no GPU computes it: not at toy sizes.
void run_conformance(Report& report, const Options& options) {
  run_tests(report, options, options.tiny ? "-*Gpu*:*ttention*" : "-*Gpu*");
}
void run_equality(Report& report, const Options& options) {
  is_tiny() = options.tiny;
  run_tests(report, options,
            options.tiny ? "*GpuStageEquality*/llama_fp32:*GpuAgainstCpu*/gpt2_fp32" : "*Gpu*");
}

}  // namespace zl::gpu
