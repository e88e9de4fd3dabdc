// Learning rates over a training in launch files, and what --software leaves of a search.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "scenarios/files/strategy_file.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/launch/launch.h"
#include "scenarios/launch/learning_rates.h"
#include "scenarios/launch/megatron.h"
#include "scenarios/launch/toml_document.h"
#include "scenarios/launch/torchtitan.h"
#include "scenarios/planner/plan.h"
#include "tests/planner/requests.h"

namespace zl {
namespace {

ScheduleConfig read_script(const std::string& rates) {
  return import_megatron("--micro-batch-size 1 --lr 4e-4 " + rates, "a.sh", {.infer_ranks = true})
      .strategy.schedule;
}

TEST(LearningRates, OfMegatronsScriptsAreSchedules) {
  const ScheduleConfig cosine = read_script(
      "--lr-decay-style cosine --lr-decay-iters 1000 --lr-warmup-iters 100 --min-lr 4e-5");
  EXPECT_EQ(cosine.kind, ScheduleKind::warmup_cosine_lr);
  EXPECT_EQ(cosine.total_num_steps, 1000);
  EXPECT_EQ(cosine.warmup_num_steps, 100);
  EXPECT_FALSE(cosine.warmup_log);
  EXPECT_DOUBLE_EQ(cosine.cos_min_ratio, 0.1);
  const ScheduleConfig line = read_script("--train-iters 500 --lr-warmup-fraction 0.1");
  EXPECT_EQ(line.kind, ScheduleKind::warmup_decay_lr) << "linear is the default";
  EXPECT_EQ(line.warmup_num_steps, 50);
  EXPECT_EQ(line.total_num_steps, 500);
  EXPECT_EQ(read_script("--lr-decay-style constant").kind, ScheduleKind::constant);
  const ImportedStrategy unknown =
      import_megatron("--micro-batch-size 1 --lr-decay-style WSD", "a.sh", {.infer_ranks = true});
  EXPECT_EQ(unknown.strategy.schedule.kind, ScheduleKind::constant);
  ASSERT_FALSE(unknown.warnings.empty());
  EXPECT_NE(unknown.warnings.front().find("stays constant"), std::string::npos);
}

TEST(LearningRates, OfTorchtitanAreSchedules) {
  if (!has_toml()) GTEST_SKIP() << "this build has no toml++";
  const auto read = [](const std::string& toml) {
    return import_torchtitan("[activation_checkpoint]\nmode = \"none\"\n" + toml, "c.toml",
                             {.infer_ranks = true})
        .strategy.schedule;
  };
  const ScheduleConfig line = read("[training]\nsteps = 1000\n[lr_scheduler]\nwarmup_steps = 20\n");
  EXPECT_EQ(line.kind, ScheduleKind::warmup_decay_lr);
  EXPECT_EQ(line.total_num_steps, 1000);
  const ScheduleConfig cosine =
      read("[lr_scheduler]\ndecay_type = \"cosine\"\nmin_lr_factor = 0.1\ntotal_steps = 300\n");
  EXPECT_EQ(cosine.kind, ScheduleKind::warmup_cosine_lr);
  EXPECT_EQ(cosine.total_num_steps, 300);
  EXPECT_DOUBLE_EQ(cosine.cos_min_ratio, 0.1);
  const ScheduleConfig older =
      read("[lr_scheduler]\ndecay_type = \"cosine\"\nlr_min = 0.2\ntotal_steps = 300\n");
  EXPECT_DOUBLE_EQ(older.cos_min_ratio, 0.2) << "the name of release 0.1";
  EXPECT_EQ(read("[lr_scheduler]\ndecay_ratio = 0.5\n").kind, ScheduleKind::constant)
      << "a level part first";
}

// For the software's own parsers: tests/parity/launch_keys.py. llama: a name that they know.
void write_files(const std::string& folder, const std::string& name, const Strategy& strategy,
                 const LaunchFacts& llama) {
  constexpr std::pair<LaunchSoftware, const char*> kEndings[] = {
      {LaunchSoftware::deepspeed, ".json"},
      {LaunchSoftware::megatron, ".sh"},
      {LaunchSoftware::torchtitan, ".toml"},
      {LaunchSoftware::torchtitan_python, ".py"}};
  for (const auto& [software, ending] : kEndings) {
    std::ofstream(folder + "/" + name + ending) << write_launch(software, strategy, llama).text;
  }
  std::ofstream(folder + "/" + name + ".plan") << strategy_to_json(strategy);
}

TEST(LearningRates, ComeBackFromAScript) {
  const PlanRequest request = test::small_request(8, 8, 64);
  const LaunchFacts facts{
      .model = request.scenario.model, .ranks = 8, .node_devices = 8, .sequence_length = 1024};
  Strategy strategy =
      load_strategy(
          "zero-2",
          {.ranks = 8, .precision = DType::bf16, .micro_batch = 1, .gradient_accumulation = 8})
          .strategy;
  const double peak = strategy.optimizer.lr;
  LaunchFacts llama = facts;
  llama.model.name = "llama3-8b";
  const char* const folder = std::getenv("ZL_LAUNCH_FILES");
  constexpr const char* kWays[] = {"rates_level", "rates_line", "rates_cosine"};
  for (const LearningRates& rates :
       {LearningRates{.most = peak, .warmup = 30},
        LearningRates{.way = LearningRates::Way::line, .most = peak, .warmup = 30, .steps = 400},
        LearningRates{.way = LearningRates::Way::cosine,
        .most = peak,
        .last = 0.25 * peak,
        .warmup = 30,
        .steps = 400}}) {
    strategy.schedule = *schedule_of(rates);
    if (folder != nullptr) {
      write_files(folder, kWays[static_cast<int>(rates.way)], strategy, llama);
    }
    const std::string text = write_launch(LaunchSoftware::megatron, strategy, facts).text;
    const ImportedStrategy back =
        import_megatron(text, "a.sh", {.model = &facts.model, .infer_ranks = true});
    EXPECT_TRUE(back.strategy.schedule == strategy.schedule) << text;
    if (!has_toml()) continue;
    const std::string toml = write_launch(LaunchSoftware::torchtitan, strategy, facts).text;
    const ImportedStrategy again =
        import_torchtitan(toml, "c.toml", {.model = &facts.model, .infer_ranks = true});
    EXPECT_TRUE(again.strategy.schedule == strategy.schedule) << toml;
    // Release 0.1 passes over min_lr_factor.
    EXPECT_EQ(toml.find("0.1 where") == std::string::npos, rates.last > 0) << toml;
  }
  const std::string python = write_launch(LaunchSoftware::torchtitan_python, strategy, llama).text;
  EXPECT_NE(python.find("config.training.steps = 400\n"), std::string::npos) << python;
  EXPECT_NE(python.find("Config(warmup_steps=30, decay_type=\"cosine\", min_lr_factor=0.25)"),
            std::string::npos)
      << python;
  strategy.schedule.warmup_log = true;
  for (const LaunchSoftware software : {LaunchSoftware::megatron, LaunchSoftware::torchtitan}) {
    EXPECT_THROW(write_launch(software, strategy, facts), Error);
  }
}

TEST(LearningRates, OfTorchtitanBeginAtZero) {
  const PlanRequest request = test::small_request(8, 8, 64);
  const LaunchFacts facts{
      .model = request.scenario.model, .ranks = 8, .node_devices = 8, .sequence_length = 1024};
  Strategy strategy = request.scenario.strategies.front().strategy;
  strategy.schedule = *schedule_of({.way = LearningRates::Way::cosine,
                                    .first = 0.1 * strategy.optimizer.lr,
                                    .most = strategy.optimizer.lr,
                                    .warmup = 30,
                                    .steps = 400});
  EXPECT_THROW(write_launch(LaunchSoftware::torchtitan, strategy, facts), Error);
}

TEST(Software, LimitsAPlanToWhatItCanDo) {
  PlanRequest request = test::small_request(8, 8, 32);
  request.scenario.run.software = "deepspeed";
  const Plans plans = find_plans(request);
  ASSERT_FALSE(plans.best.empty());
  for (const Plan& plan : plans.best) {
    EXPECT_EQ(plan.strategy.strategy.tensor.ranks, 1);
    EXPECT_EQ(plan.strategy.strategy.pipeline.ranks, 1);
  }
  request.limits = parse_limits("tensor=2");
  EXPECT_THROW(find_plans(request), Error);
}

}  // namespace
}  // namespace zl
