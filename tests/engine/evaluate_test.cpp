// Validation loss: the same under every ZeRO stage, without dropout, and without a trace in the
// training that goes on.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "core/data/token_source.h"
#include "core/train/rank_program.h"
#include "tests/engine/comparisons.h"
#include "tests/temp_folder.h"

namespace zl::test {
namespace {

constexpr int kRanks = 2;

Batch batch_of(const ModelConfig& model, int step, int rank) {
  return TokenSource::synthetic(model.vocab, 3)
      .batch({.step = step,
              .rank = rank,
              .ranks = kRanks,
              .micro_batch = 2,
              .sequence_length = model.max_sequence});
}

struct Losses {
  std::vector<double> training, evaluation;
};

// Trains three steps; with `evaluates` asks for the loss of one batch before each and at the end.
Losses train(const ModelConfig& model, const Strategy& s, bool evaluates) {
  Losses losses;
  cpu::make_world({kRanks, 1})->run([&](RankHandle handle) {
    const int rank = handle.communicator.rank();
    RankContext context(handle.device, handle.communicator);
    Engine engine(context, model, s, model.max_sequence, 11);
    const auto evaluate = [&] {
      if (!evaluates) return;
      const Evaluation found = engine.evaluate(batch_of(model, 100, rank));
      EXPECT_EQ(found.rows, kRanks * 2 * model.max_sequence);
      if (rank == 0) losses.evaluation.push_back(found.mean());
    };
    for (int step = 0; step < 3; ++step) {
      evaluate();
      const Batch batch = batch_of(model, step, rank);
      for (int micro = 0; micro < s.gradient_accumulation; ++micro) {
        engine.forward(batch.tokens, batch.targets);
        engine.backward();
      }
      const double loss = engine.step().loss;
      if (rank == 0) losses.training.push_back(loss);
    }
    evaluate();
  });
  return losses;
}

std::vector<Strategy> strategies() {
  std::vector<Strategy> all;
  for (int stage = 0; stage <= 3; ++stage) {
    for (const bool overlap : {false, true}) {
      Strategy s = strategy(stage);
      s.zero.overlap_comm = overlap;
      all.push_back(s);
      s.gradient_accumulation = 2;
      s.recompute.mode = RecomputeMode::every_k;
      s.recompute.every = 2;
      s.zero.max_reuse_distance = 1'000'000;
      all.push_back(s);
    }
  }
  return all;
}

TEST(Evaluate, LeavesNoTraceInTheTraining) {
  for (const ModelConfig& model : {with_dropout(tiny_gpt2()), tiny_llama()}) {
    for (const Strategy& s : strategies()) {
      EXPECT_EQ(train(model, s, true).training, train(model, s, false).training) << s.name;
    }
  }
}

TEST(Evaluate, IsTheSameUnderEveryStage) {
  for (const ModelConfig& model : {tiny_gpt2(), tiny_llama()}) {
    std::vector<double> first;
    for (const Strategy& s : strategies()) {
      if (s.gradient_accumulation > 1) continue;  // trains on other weights
      const std::vector<double> found = train(model, s, true).evaluation;
      if (first.empty()) first = found;
      EXPECT_EQ(found, first) << model.name << " " << s.name << " " << s.zero.overlap_comm;
    }
    EXPECT_NE(first.front(), first.back());
  }
}

// The loss of a step is of the weights before it, so without dropout the two are one number.
TEST(Evaluate, IsTheTrainingLossWithoutDropout) {
  const ModelConfig plain = tiny_gpt2(), dropped = with_dropout(plain);
  double trained = 0, evaluated = 0, evaluated_dropped = 0, trained_dropped = 0;
  cpu::make_world({1, 1})->run([&](RankHandle handle) {
    const Batch batch = TokenSource::synthetic(plain.vocab, 3)
                            .batch({.micro_batch = 2, .sequence_length = plain.max_sequence});
    const auto both = [&](const ModelConfig& model, double& evaluation, double& training) {
      RankContext context(handle.device, handle.communicator);
      Engine engine(context, model, strategy(0), model.max_sequence, 11);
      evaluation = engine.evaluate(batch).mean();
      engine.forward(batch.tokens, batch.targets);
      engine.backward();
      training = engine.step().loss;
    };
    both(plain, evaluated, trained);
    both(dropped, evaluated_dropped, trained_dropped);
  });
  EXPECT_NEAR(evaluated, trained, 1e-6);  // their sums are divided at other places
  EXPECT_EQ(evaluated_dropped, evaluated);
  EXPECT_NE(trained_dropped, trained);
}

// Rows whose target is -1 neither count nor weigh.
TEST(Evaluate, AveragesOverTheRowsThatCount) {
  const ModelConfig model = tiny_gpt2();
  double all = 0, front = 0, back = 0;
  cpu::make_world({1, 1})->run([&](RankHandle handle) {
    const Batch batch = TokenSource::synthetic(model.vocab, 3)
                            .batch({.micro_batch = 2, .sequence_length = model.max_sequence});
    RankContext context(handle.device, handle.communicator);
    Engine engine(context, model, strategy(0), model.max_sequence, 11);
    const std::size_t rows = batch.targets.size(), cut = rows / 3;
    const auto without = [&](std::size_t begin, std::size_t end) {
      Batch masked = batch;
      for (std::size_t i = begin; i < end; ++i) masked.targets[i] = Objective::kIgnored;
      return engine.evaluate(masked).mean();
    };
    all = engine.evaluate(batch).mean();
    front = without(cut, rows);
    back = without(0, cut);
  });
  EXPECT_NEAR(front / 3 + back * 2 / 3, all, 1e-6);
  EXPECT_GT(std::abs(front - all), 1e-4);
}

// A text of 100 tokens, of which 99 are predicted; 2 ranks of 2 windows of 16 end in the middle.
TokenSource counting_text(const TempFolder& folder) {
  std::string text;
  for (int i = 0; i < 100; ++i) text.push_back(static_cast<char>('a' + i % 7));
  const std::string path = (folder / "text.txt").string();
  std::ofstream(path, std::ios::binary) << text;
  return TokenSource::open(path, *load_tokenizer(""), 256, 5);
}

RankOutcome run_judged(const ModelConfig& model, const Strategy& s, const TokenSource& data,
                       const EvaluationPlan& plan, std::int64_t steps = 6,
                       const CheckpointConfig& checkpoint = {}) {
  ProgramOptions options;
  options.steps = steps;
  options.checkpoint = checkpoint;
  options.sequence_length = 16;
  options.seed = 11;
  options.evaluation = plan;
  RankOutcome first;
  cpu::make_world({kRanks, 1})->run([&](RankHandle handle) {
    const int rank = handle.communicator.rank();
    RankOutcome outcome = run_rank(handle, model, s, data, options);
    if (rank == 0) first = std::move(outcome);
  });
  return first;
}

// What a run says of itself, but for its times, and for the order of its program where a step finds
// that a judgement has waited for its weights.
RunResult books(RankOutcome outcome, const Strategy& s) {
  outcome.result.step_seconds.clear();
  outcome.result.evaluations.clear();
  const bool waits = s.zero.overlap_comm && (s.zero.stage == 1 || s.zero.stage == 2);
  if (waits) outcome.result.op_sequence_hash = 0;
  return outcome.result;
}

TEST(EvaluationWhileTraining, IsInNoBookOfTheTraining) {
  const TempFolder folder;
  const TokenSource data = counting_text(folder);
  ModelConfig model = with_dropout(tiny_gpt2());
  model.vocab = 256;
  for (const Strategy& s : strategies()) {
    const RankOutcome plain = run_judged(model, s, data, {});
    const RankOutcome judged =
        run_judged(model, s, data, {.source = data.windows({.length = 16}), .every = 2});
    EXPECT_NE(books(plain, s).op_count, 0);
    EXPECT_EQ(books(plain, s), books(judged, s)) << s.name << " " << s.zero.overlap_comm;
    const auto& points = judged.result.evaluations;
    ASSERT_EQ(points.size(), 4u);
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(points[i].step, 2 * i);
      EXPECT_EQ(points[i].tokens, 99);
    }
    EXPECT_LT(points[3].loss, points[0].loss - 0.05) << "the text repeats itself";
  }
}

TEST(EvaluationWhileTraining, TellsOfTheBestOnAllRanks) {
  const TempFolder folder;
  const TokenSource data = counting_text(folder);
  ModelConfig model = tiny_gpt2();
  model.vocab = 256;
  Strategy s = strategy(3);
  s.optimizer.lr = 0.3;  // it gets worse sooner or later
  std::vector<std::pair<std::int64_t, bool>> seen[kRanks];
  const RankOutcome outcome =
      run_judged(model, s, data,
                 {.source = data.windows({.length = 16}),
                  .every = 1,
                  .on_judged = [&](Engine& engine, const EvaluationPoint& point, bool is_best) {
                    engine.gather_parameter(0);  // the ranks may work together
                    seen[engine.context().rank()].emplace_back(point.step, is_best);
                  }});
  EXPECT_EQ(seen[0], seen[1]);
  ASSERT_EQ(seen[0].size(), 7u);
  std::int64_t best = -1;
  for (const auto& [step, is_best] : seen[0]) best = is_best ? step : best;
  ASSERT_NE(best_evaluation(outcome.result), nullptr);
  EXPECT_EQ(best, best_evaluation(outcome.result)->step);
  EXPECT_TRUE(std::any_of(seen[0].begin(), seen[0].end(), [](auto each) { return !each.second; }));
}

// Steps with a judgement, and whether they were the best so far.
using Judged = std::vector<std::pair<std::int64_t, bool>>;

// A training of 6 steps that gets worse sooner or later, in parts: each is resumed by the next.
class ResumedJudgement : public testing::Test {
 protected:
  Judged part(std::int64_t steps, const std::string& name, const std::string& data = "text") {
    Judged seen;
    none_better_ = 0;
    EvaluationPlan plan{.source = data_.windows({.length = 16}), .data = data, .every = 1};
    plan.on_judged = [&](Engine& engine, const EvaluationPoint& point, bool is_best) {
      if (engine.context().rank() == 0) seen.emplace_back(point.step, is_best);
    };
    plan.on_none_better = [&](Engine& engine, const EvaluationPoint& best) {
      engine.gather_parameter(0);  // the ranks may work together
      if (engine.context().rank() == 0) none_better_ = best.step;
    };
    if (data.empty()) plan = {};
    Strategy s = strategy(2);
    s.optimizer.lr = 0.3;
    result_ = run_judged(model_, s, data_, plan, steps,
                         {(folder_ / name).string(), 1, true, {{"run", "tests"}}})
                  .result;
    return seen;
  }

  void SetUp() override {
    model_.vocab = 256;
    whole_ = part(6, "whole");
    ASSERT_EQ(whole_.size(), 7u);
    while (cut_ < 6 && whole_[static_cast<std::size_t>(cut_ + 1)].second) ++cut_;
    ASSERT_LT(cut_, 6) << "no step is worse than the one before";
    ASSERT_GT(cut_, 0);
  }

  const TempFolder folder_;
  const TokenSource data_ = counting_text(folder_);
  ModelConfig model_ = tiny_gpt2();
  Judged whole_;
  std::int64_t cut_ = 0;  // steps, after which one is worse
  std::int64_t none_better_ = 0;
  RunResult result_;
};

TEST_F(ResumedJudgement, KnowsTheBestBeforeIt) {
  Judged parts = part(cut_, "cut");
  EXPECT_EQ(none_better_, 0);
  for (const auto& each : part(cut_ + 1, "cut")) parts.push_back(each);
  EXPECT_EQ(parts, Judged(whole_.begin(), whole_.begin() + cut_ + 2));
  ASSERT_NE(best_evaluation(result_), nullptr);
  EXPECT_EQ(best_evaluation(result_)->step, cut_);
  EXPECT_EQ(none_better_, cut_);
}

// Nothing judged the first part, or other data did: its best says nothing.
TEST_F(ResumedJudgement, BeginsAnewWithoutABestOfTheSameData) {
  for (const std::string data : {"", "other"}) {
    const std::string name = "before" + data;
    part(cut_, name, data);
    EXPECT_EQ(part(cut_ + 1, name), (Judged{{cut_ + 1, true}}));
    EXPECT_EQ(none_better_, 0);
  }
}

TEST_F(ResumedJudgement, ARunWithoutJudgementsHandsTheBestOn) {
  part(cut_, "cut");
  part(cut_ + 1, "cut", "");
  part(cut_ + 2, "cut");
  EXPECT_EQ(result_.best_before->step, cut_);
}

TEST(EvaluationWhileTraining, WithoutStepsBetweenIsAfterTheLast) {
  const TempFolder folder;
  const TokenSource data = counting_text(folder);
  ModelConfig model = tiny_gpt2();
  model.vocab = 256;
  const auto points = run_judged(model, strategy(0), data, {.source = data.windows({.length = 16})})
                          .result.evaluations;
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].step, 6);
  EXPECT_EQ(points[0].tokens, 99);
}

}  // namespace
}  // namespace zl::test
