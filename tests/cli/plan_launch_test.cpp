// `zerolab plan -o SOFTWARE` and `zerolab import megatron|torchtitan`, as a user types them.
#include <array>
#include <regex>
#include <string>

#include "core/base/files.h"
#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

std::vector<std::string> plan(const std::vector<std::string>& more) {
  std::vector<std::string> all{"plan",           "gpt2-124m", "--cluster",  "2xh100",
                               "--global-batch", "8",         "--constrain"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(PlanLaunch, WhatIsWrittenIsReadAgain) {
  const Home home;
  const std::string limits = "zero=1,recompute=none";
  const Output own = zerolab(home, plan({limits, "-o", "zerolab"}));
  ASSERT_EQ(own.code, 0) << own.err;
  const Output script = zerolab(home, plan({limits, "-o", "megatron"}));
  ASSERT_EQ(script.code, 0) << script.err;
  EXPECT_CONTAINS(script.out, "--use-distributed-optimizer");
  const Output read = zerolab(home, {"import", "megatron", home.file("args.sh", script.out)});
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_EQ(Json::parse(read.out), Json::parse(own.out));
  EXPECT_CONTAINS(read.err, "2 ranks");
}

TEST(PlanLaunch, RefusesBeforeTheSearchWhatItDoesNotKnow) {
  const Home home;
  EXPECT_CONTAINS(refused(home, plan({"zero=1", "-o", "nemo"}), 2),
                  "zerolab, deepspeed, megatron, torchtitan, torchtitan-python, accelerate");
  EXPECT_CONTAINS(refused(home, plan({"zero=1", "-o", "megatron", "--gpus", "2,4"}), 2),
                  "-o megatron writes one plan");
}

TEST(PlanLaunch, SaysWhatASoftwareLacksAndWhereThereIsNoPlan) {
  const Home home;
  const std::string limits = "zero=1,recompute=none,tensor=1,pipeline=1";
  EXPECT_CONTAINS(refused(home, plan({limits, "-o", "accelerate"}), 3), "--constrain zero>=2");
  const std::vector<std::string> part = plan({"recompute=selective:mlp,zero=1", "-o", "megatron"});
  EXPECT_CONTAINS(refused(home, part, 3), "; or with --software megatron-core, ");
  EXPECT_CONTAINS(refused(home, plan({limits, "-o", "megatron", "--pick", "99"}), 2),
                  "--pick: there is no plan 99");
  EXPECT_CONTAINS(refused(home, plan({limits, "-o", "megatron", "--device-memory", "256MiB"}), 4),
                  "no plan fits");
}

TEST(PlanLaunch, AReportHasThePlansAndHowToRunThem) {
  const Home home;
  const std::string limits = "zero=1,recompute=none", page = home.path("plan.md");
  const Output found = zerolab(home, plan({limits, "--report", page}));
  ASSERT_EQ(found.code, 0) << found.err;
  const std::string text = read_file(page);
  EXPECT_CONTAINS(text, "# Plan: gpt2-124m on 2xh100");
  EXPECT_CONTAINS(text, "--use-distributed-optimizer");
  EXPECT_CONTAINS(text, "zero\\>=2") << "accelerate does not have it, and what would do is said";
  EXPECT_CONTAINS(text, "| sequences a step | 8 ");
  const Output html = zerolab(home, plan({limits, "--pick", "2", "--report", home.path("p.html")}));
  ASSERT_EQ(html.code, 0) << html.err;
  EXPECT_CONTAINS(read_file(home.path("p.html")), "<svg");
  EXPECT_CONTAINS(refused(home, plan({limits, "--report", "plan.pdf"}), 2),
                  "ends neither in .html nor in .md");
  EXPECT_CONTAINS(refused(home, plan({limits, "--gpus", "2,4", "--report", page}), 2),
                  "--report: is of one search");
}

TEST(PlanLaunch, APriceHasAUnit) {
  const Home home;
  EXPECT_CONTAINS(refused(home, plan({"zero=1", "--price", "2.5"}), 2), "write 2.5/gpu-hour");
  EXPECT_CONTAINS(refused(home, plan({"zero=1", "--price", "2/gpu-hour,3/gpu-hour"}), 2),
                  "2 prices of 1 --clusters");
}

// As `run` says it of the same scenario.
TEST(PlanLaunch, WarnsOfWhatTheScenarioHasOnce) {
  const Home home;
  const Output found =
      zerolab(home, {"plan", "llama3-8b", "--cluster", "h100", "--gpus", "8,16", "--global-batch",
                     "16", "--sequence-length", "16k", "--constrain",
                     "tensor=8,pipeline=1,replicate=1,zero=1,recompute=full,micro_batch=1"});
  ASSERT_EQ(found.code, 0) << found.err;
  const std::string warning = "sequences of 16384 are longer than the 8192";
  EXPECT_CONTAINS(found.err, warning);
  EXPECT_EQ(found.err.find(warning), found.err.rfind(warning));
}

// They would be ignored without a word.
TEST(PlanLaunch, WhatTheSearchDecidesIsNoOption) {
  const Home home;
  for (const auto& [option, value, instead] :
       {std::array{"--tensor", "2", "--constrain tensor=2"},
        std::array{"--micro-batch", "4", "--constrain micro_batch=2"},
        std::array{"--strategy", "zero-3", "--from FILE"},
        std::array{"--gradient-accumulation", "2", "--global-batch"}}) {
    EXPECT_CONTAINS(refused(home, plan({"zero=1", option, value}), 2), instead) << option;
  }
  EXPECT_CONTAINS(refused(home, plan({"zero=1", "--sequence-parallel"}), 2),
                  "--constrain sequence_parallel=true");
  EXPECT_CONTAINS(refused(home, plan({"zero=1", "--clusters", "2xh100,2xh200"}), 2), "--cluster: ");
}

// Of a pipeline on a V the rank that holds most is not the first, whose books are compared.
TEST(PlanLaunch, ATwinIsEqualInEveryTable) {
  const Home home;
  const Output twin = zerolab(home, plan({"tensor=1,pipeline=2,zero=0,schedule=zb-v,recompute=none",
                                          "--twin", "--top", "1", "--software", "zerolab"}));
  ASSERT_EQ(twin.code, 0) << twin.err;
  EXPECT_CONTAINS(twin.out, "What a rank held, sent and ran:");
  // Memory and wire bytes of the prediction; whether its time is in its bar is another matter.
  EXPECT_TRUE(std::regex_search(twin.out, std::regex(" % +(yes|NO) +yes +yes *\n"))) << twin.out;
}

TEST(PlanLaunch, ImportNamesTheLine) {
  const Home home;
  const std::string script = home.file("a.sh", "--bf16\n--micro-batch-size x\n");
  EXPECT_CONTAINS(refused(home, {"import", "megatron", script}, 3), "a.sh:2: --micro-batch-size");
  const Output toml = zerolab(home, {"import", "torchtitan", home.file("c.toml", "a = [\n")});
  EXPECT_TRUE(toml.code == 3 || toml.code == 5) << toml.code;
  EXPECT_CONTAINS(toml.err, toml.code == 3 ? "malformed TOML" : "install libtomlplusplus-dev");
}

}  // namespace
}  // namespace zl::cli_test
