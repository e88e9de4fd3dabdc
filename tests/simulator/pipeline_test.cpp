// Pipelines of hand-made stages, priced together: the makespans of closed forms (Narayanan et al.
// 2021).
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "simulator/timeline.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::kMs;
using test::kWire;
using test::links_without_latency;
using test::plain_cluster;
using test::sum_of_parts;
using test::TraceBuilder;

// Stage `rank` of a pipeline of `stages` ranks; takes 1 ms forward and 2 ms backward if not told.
class Stage {
 public:
  Stage(int rank, int stages, double forward = 1, double backward = 2)
      : rank_(rank), stages_(stages), forward_(forward), backward_(backward) {}

  TraceBuilder builder;

  void forward() { run(forward_, rank_ - 1, rank_ + 1, Phase::forward); }
  void backward() { run(backward_, rank_ + 1, rank_ - 1, Phase::backward); }

 private:
  void run(double milliseconds, int from, int to, Phase phase) {
    builder.scope.phase = phase;
    if (from >= 0 && from < stages_) {
      builder.message(kWire, false, from, stages_);
      order(kWire, kMain);
    }
    builder.op(kMain, milliseconds);
    if (to < 0 || to >= stages_) return;
    order(kMain, kWire);
    builder.message(kWire, true, to, stages_);
  }
  void order(StreamId first, StreamId second) {
    builder.record(first, id_);
    builder.wait(second, id_++);
  }

  int rank_, stages_;
  double forward_, backward_;
  std::int64_t id_ = 0;
};

void gpipe(Stage& stage, int micro_batches) {
  for (int i = 0; i < micro_batches; ++i) stage.forward();
  for (int i = 0; i < micro_batches; ++i) stage.backward();
}

void one_forward_one_backward(Stage& stage, int rank, int stages, int micro_batches) {
  const int warm_up = std::min(micro_batches, stages - 1 - rank);
  for (int i = 0; i < warm_up; ++i) stage.forward();
  for (int i = warm_up; i < micro_batches; ++i) {
    stage.forward();
    stage.backward();
  }
  for (int i = 0; i < warm_up; ++i) stage.backward();
}

std::vector<Timeline> price_stages(const std::vector<Stage>& stages, const ClusterSpec& cluster) {
  std::vector<RankTrace> traces;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    traces.push_back({&stages[i].builder.trace, {static_cast<int>(i)}});
  }
  return price(traces, cluster);
}

std::int64_t makespan(const std::vector<Timeline>& timelines) {
  std::int64_t last = 0;
  for (const Timeline& timeline : timelines) last = std::max(last, timeline.total);
  return last;
}

// Narayanan et al. 2021: both schedules take (m + p - 1)(F + B), and a stage idles (p - 1)(F + B).
TEST(Pipelines, TakeWhatTheClosedFormsSay) {
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {1, 2, 4, 8, 13}) {
      for (const bool interleaves : {false, true}) {
        std::vector<Stage> stages;
        for (int rank = 0; rank < p; ++rank) {
          stages.emplace_back(rank, p);
          if (interleaves) {
            one_forward_one_backward(stages.back(), rank, p, m);
          } else {
            gpipe(stages.back(), m);
          }
        }
        const std::vector<Timeline> timelines = price_stages(stages, links_without_latency(p));
        EXPECT_EQ(makespan(timelines), 3 * (m + p - 1) * kMs) << p << " stages, " << m;
        // The first stage ends the step: all that it does not compute is bubble.
        const StepPrice& first = timelines.front().steps.front();
        EXPECT_EQ(first.bubble, 3 * (p - 1) * kMs);
        for (const Timeline& timeline : timelines) {
          EXPECT_EQ(sum_of_parts(timeline.steps[0]), timeline.total);
          EXPECT_EQ(timeline.steps[0].compute, 3 * m * kMs);
        }
      }
    }
  }
}

// A pipeline of one-rank stages as its cores really work: from one end of a pass to the next, each
// rank that has what it needs goes as fast as the cores allow. Milliseconds.
class OnCores {
 public:
  OnCores(const std::vector<std::pair<int, int>>& passes, int micro_batches, int cores)
      : passes_(passes),
        micro_batches_(micro_batches),
        cores_(cores),
        done_(passes.size(), 0),
        left_(passes.size()) {
    for (int rank = 0; rank < stages(); ++rank) left_[at(rank)] = passes[at(rank)].first;
  }

  double gpipe() {
    double now = 0;
    for (std::vector<int> working = ready(); !working.empty(); working = ready()) {
      const double pace =
          std::min(1.0, static_cast<double>(cores_) / static_cast<double>(working.size()));
      double least = 1e9;
      for (const int rank : working) least = std::min(least, left_[at(rank)] / pace);
      now += least;
      for (const int rank : working) left_[at(rank)] -= least * pace;
      for (const int rank : working) {
        if (left_[at(rank)] > 1e-9) continue;
        const bool next_is_forward = ++done_[at(rank)] < micro_batches_;
        left_[at(rank)] = next_is_forward ? passes_[at(rank)].first : passes_[at(rank)].second;
      }
    }
    return now;
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  int stages() const { return static_cast<int>(passes_.size()); }
  // All forwards before all backwards; what is forwarded comes from the rank before.
  std::vector<int> ready() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < stages(); ++rank) {
      const int next = done_[at(rank)];
      if (next == 2 * micro_batches_) continue;
      const int other = next < micro_batches_ ? rank - 1 : rank + 1;
      if (other < 0 || other == stages() || done_[at(other)] > next) ranks.push_back(rank);
    }
    return ranks;
  }

  std::vector<std::pair<int, int>> passes_;  // of each rank: forward, backward
  int micro_batches_, cores_;
  std::vector<int> done_;
  std::vector<double> left_;  // of the pass that comes
};

// Ranks that wait for their turn leave their core to others.
TEST(Pipelines, OfMoreRanksThanCoresShareThemAmongTheRanksThatWork) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const int p = 2 + static_cast<int>(random() % 5), m = 1 + static_cast<int>(random() % 6);
    const int cores = 1 + static_cast<int>(random() % static_cast<unsigned>(p));
    std::vector<Stage> stages;
    std::vector<std::pair<int, int>> passes;
    for (int rank = 0; rank < p; ++rank) {
      const int f = 1 + static_cast<int>(random() % 9), b = 1 + static_cast<int>(random() % 9);
      passes.emplace_back(f, b);
      gpipe(stages.emplace_back(rank, p, f, b), m);
    }
    ClusterSpec cluster = links_without_latency(p);
    cluster.shared_cores = cores;
    // An op takes its milliseconds on the whole machine: on one of its cores so many times as long.
    const double priced = static_cast<double>(makespan(price_stages(stages, cluster)));
    const double on_cores = OnCores(passes, m, cores).gpipe() * cores * kMs;
    EXPECT_NEAR(priced, on_cores, 1e-6 * on_cores)
        << p << " stages on " << cores << " cores, " << m << ", trial " << trial;
  }
}

// Uneven stages: sum f + sum b + (m - 1)(max f + max b).
TEST(Pipelines, GPipeOfUnevenStagesIsBoundByTheSlowest) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int trial = 0; trial < 50; ++trial) {
    const int p = 2 + static_cast<int>(random() % 5), m = 1 + static_cast<int>(random() % 9);
    std::vector<Stage> stages;
    int sum = 0, slowest_forward = 0, slowest_backward = 0;
    for (int rank = 0; rank < p; ++rank) {
      const int f = 1 + static_cast<int>(random() % 9), b = 1 + static_cast<int>(random() % 9);
      sum += f + b;
      slowest_forward = std::max(slowest_forward, f);
      slowest_backward = std::max(slowest_backward, b);
      gpipe(stages.emplace_back(rank, p, f, b), m);
    }
    EXPECT_EQ(makespan(price_stages(stages, links_without_latency(p))),
              (sum + (m - 1) * (slowest_forward + slowest_backward)) * kMs);
  }
}

TEST(Pipelines, OneMicroBatchPaysEveryHop) {
  for (const int p : {2, 5, 12}) {
    std::vector<Stage> stages;
    for (int rank = 0; rank < p; ++rank) gpipe(stages.emplace_back(rank, p), 1);
    // Nodes of eight: 1 us within, 10 us between the eighth rank and the ninth.
    const std::int64_t within = 1'000'000, between = 10'000'000;
    const std::int64_t hops = p <= 8 ? (p - 1) * within : (p - 2) * within + between;
    EXPECT_EQ(makespan(price_stages(stages, plain_cluster(p))), 3 * p * kMs + 2 * hops);
  }
}

// The order in which classes are given does not move an event.
TEST(Pipelines, TheOrderOfTheClassesDoesNotMatter) {
  const int p = 4, m = 8;
  std::vector<Stage> stages;
  for (int rank = 0; rank < p; ++rank) {
    one_forward_one_backward(stages.emplace_back(rank, p), rank, p, m);
  }
  const std::vector<Timeline> timelines = price_stages(stages, plain_cluster(p));
  std::vector<int> order{0, 1, 2, 3};
  while (std::next_permutation(order.begin(), order.end())) {
    std::vector<RankTrace> traces;
    for (const int rank : order) {
      traces.push_back({&stages[static_cast<std::size_t>(rank)].builder.trace, {rank}});
    }
    const std::vector<Timeline> again = price(traces, plain_cluster(p));
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto rank = static_cast<std::size_t>(order[i]);
      ASSERT_EQ(again[i].total, timelines[rank].total);
      ASSERT_EQ(again[i].steps[0].bubble, timelines[rank].steps[0].bubble);
    }
  }
}

}  // namespace
}  // namespace zl::sim
