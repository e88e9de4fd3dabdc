// Schedules of pipelines against published tables, closed forms and their own proof.
#include "core/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "core/pipeline/pipeline_times.h"

namespace zl {
namespace {

// One case of tests/golden/pipeline_schedules.txt, as text.
struct Golden {
  std::string name;
  PipelineKind kind = PipelineKind::gpipe;
  PipelineShape shape;
  std::string makespan, busy, bubble, until_input, until_weights;
  std::vector<std::string> lists, starts;
};

std::vector<Golden> read_goldens() {
  std::ifstream file(ZL_SOURCE_DIR "/tests/golden/pipeline_schedules.txt");
  std::vector<Golden> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const std::string key = line.substr(0, line.find(' ')), rest = line.substr(key.size() + 1);
    if (key == "case") {
      Golden& golden = all.emplace_back();
      golden.name = rest;
      std::istringstream words(rest);
      std::string kind;
      words >> kind >> golden.shape.ranks >> golden.shape.micro_batches >> golden.shape.chunks >>
          golden.shape.group;
      golden.kind = pipeline_kind(kind).value();
    }
    Golden& golden = all.back();
    if (key == "makespan") golden.makespan = rest;
    if (key == "busy") golden.busy = rest;
    if (key == "bubble") golden.bubble = rest;
    if (key == "peak_until_I") golden.until_input = rest;
    if (key == "peak_until_W") golden.until_weights = rest;
    if (key == "list") golden.lists.push_back(rest);
    if (key == "start") golden.starts.push_back(rest);
  }
  return all;
}

PipelineTimes unit_times(const Pipeline& pipeline) {
  return time_pipeline(pipeline, std::vector<StageCosts>(pipeline.stages()));
}

template <class Get>
std::string of_ranks(const PipelineTimes& times, const Get& get) {
  std::string text;
  for (const PipelineTimes::Rank& rank : times.ranks) {
    text += (text.empty() ? "" : " ") + std::to_string(get(rank));
  }
  return text;
}

// Of overlapped work once.
std::string starts_of(const Pipeline& pipeline, const PipelineTimes& times, std::size_t rank) {
  std::string text;
  bool within = false;
  for (std::size_t i = 0; i < pipeline.work[rank].size(); ++i) {
    if (!within) {
      text += (text.empty() ? "" : " ") + std::to_string(times.ranks[rank].start[i]);
    }
    within = pipeline.work[rank][i].with_next;
  }
  return text;
}

TEST(Pipeline, IsThePublishedTableOpByOpAndStartByStart) {
  const std::vector<Golden> goldens = read_goldens();
  ASSERT_EQ(goldens.size(), 26U);
  for (const Golden& golden : goldens) {
    SCOPED_TRACE(golden.name);
    const Pipeline pipeline = make_pipeline(golden.kind, golden.shape);
    check_pipeline(pipeline);
    const PipelineTimes times = unit_times(pipeline);
    using Rank = PipelineTimes::Rank;
    EXPECT_EQ(std::to_string(times.makespan), golden.makespan);
    EXPECT_EQ(of_ranks(times, [](const Rank& rank) { return rank.busy; }), golden.busy);
    EXPECT_EQ(of_ranks(times, [](const Rank& rank) { return rank.bubble(); }), golden.bubble);
    EXPECT_EQ(of_ranks(times, [](const Rank& rank) { return rank.held_until_input_gradient; }),
              golden.until_input);
    EXPECT_EQ(of_ranks(times, [](const Rank& rank) { return rank.held_until_weight_gradient; }),
              golden.until_weights);
    for (int rank = 0; rank < golden.shape.ranks; ++rank) {
      EXPECT_EQ(to_text(pipeline, rank), golden.lists[rank]);
      EXPECT_EQ(starts_of(pipeline, times, rank), golden.starts[rank]);
    }
  }
}

std::vector<PipelineShape> legal_shapes(PipelineKind kind) {
  std::vector<PipelineShape> shapes;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int micros = 1; micros <= 32; ++micros) {
      for (int chunks = 1; chunks <= 4; ++chunks) {
        const PipelineShape shape{.ranks = ranks, .micro_batches = micros, .chunks = chunks};
        try {
          check_shape(kind, shape);
          shapes.push_back(shape);
        } catch (const Error&) {
        }
      }
    }
  }
  return shapes;
}

TEST(Pipeline, OfEveryShapeIsWholeAndEnds) {
  for (int i = 0; i < kPipelineKinds; ++i) {
    const auto kind = static_cast<PipelineKind>(i);
    const std::vector<PipelineShape> shapes = legal_shapes(kind);
    EXPECT_GE(shapes.size(), 80U) << name_of(kind);
    for (const PipelineShape& shape : shapes) {
      SCOPED_TRACE(std::string(name_of(kind)) + " " + std::to_string(shape.ranks) + " " +
                   std::to_string(shape.micro_batches) + " " + std::to_string(shape.chunks));
      ASSERT_NO_THROW(check_pipeline(make_pipeline(kind, shape)));
    }
  }
}

// Weight gradients add up in the order of the micro-batches, so their bits do not depend on the
// schedule. Breadth-first adds them up the other way round.
TEST(Pipeline, AddsGradientsUpInTheOrderOfMicroBatches) {
  for (int i = 0; i < kPipelineKinds; ++i) {
    const auto kind = static_cast<PipelineKind>(i);
    const int step = kind == PipelineKind::breadth_first ? -1 : 1;
    for (const PipelineShape& shape : legal_shapes(kind)) {
      const Pipeline pipeline = make_pipeline(kind, shape);
      std::vector<int> next(pipeline.stages(), step > 0 ? 0 : shape.micro_batches - 1);
      for (const std::vector<Work>& list : pipeline.work) {
        for (const Work& work : list) {
          if (work.kind != WorkKind::backward && work.kind != WorkKind::weight_gradient) continue;
          ASSERT_EQ(work.micro, next[work.stage]) << name_of(kind);
          next[work.stage] += step;
        }
      }
    }
  }
}

struct ClosedForm {
  PipelineKind kind;
  int chunks;
  // From ranks p, micro-batches m, chunks v and rank r.
  std::int64_t (*makespan)(int p, int m, int v);
  int (*until_weights)(int p, int m, int v, int r);
  int (*until_input)(int p, int m, int v, int r);
  int least;  // micro-batches for each rank from which on the makespan holds
};

// Closed forms with forward, input and weight gradient of one unit each.
const std::vector<ClosedForm> kClosedForms{
    {PipelineKind::gpipe, 1, [](int p, int m, int) { return std::int64_t{3} * (m + p - 1); },
     [](int, int m, int, int) { return m; }, [](int, int m, int, int) { return m; }, 0},
    {PipelineKind::one_f_one_b, 1, [](int p, int m, int) { return std::int64_t{3} * (m + p - 1); },
     [](int p, int m, int, int r) { return std::min(m, p - r); },
     [](int p, int m, int, int r) { return std::min(m, p - r); }, 0},
    {PipelineKind::interleaved, 2,
     [](int p, int m, int v) { return std::int64_t{3} * (m * v + p - 1); },
     [](int p, int m, int v, int r) { return std::min(m * v, 2 * (p - 1 - r) + (v - 1) * p + 1); },
     [](int p, int m, int v, int r) { return std::min(m * v, 2 * (p - 1 - r) + (v - 1) * p + 1); },
     1},
    {PipelineKind::zb_h1, 1, [](int p, int m, int) { return std::int64_t{3} * m + p - 1; },
     [](int p, int m, int, int) { return std::min(m, p); },
     [](int p, int m, int, int r) { return std::min(m, p - r); }, 2},
    {PipelineKind::zb_h2, 1, [](int p, int m, int) { return std::int64_t{3} * m + p - 1; },
     [](int p, int m, int, int) { return std::min(m, 2 * p - 1); },
     [](int p, int m, int, int r) { return std::min(m, 2 * (p - r) - 1); }, 2},
    {PipelineKind::interleaved_zb, 2,
     [](int p, int m, int v) { return std::int64_t{3} * m * v + p - 1; },
     [](int p, int m, int v, int) { return std::min(m * v, v * p); },
     [](int p, int m, int v, int r) { return std::min(m * v, v * p - r); }, 2},
};

TEST(Pipeline, TakesAndHoldsWhatTheClosedFormsSay) {
  for (const ClosedForm& form : kClosedForms) {
    int tried = 0;
    for (const PipelineShape& shape : legal_shapes(form.kind)) {
      const int p = shape.ranks, m = shape.micro_batches, v = shape.chunks;
      if (v != form.chunks || m % p != 0 || m < form.least * p) continue;
      ++tried;
      SCOPED_TRACE(std::string(name_of(form.kind)) + " " + std::to_string(p) + " " +
                   std::to_string(m));
      const PipelineTimes times = unit_times(make_pipeline(form.kind, shape));
      EXPECT_EQ(times.makespan, form.makespan(p, m, v));
      for (int r = 0; r < p; ++r) {
        EXPECT_EQ(times.ranks[r].held_until_weight_gradient, form.until_weights(p, m, v, r));
        EXPECT_EQ(times.ranks[r].held_until_input_gradient, form.until_input(p, m, v, r));
      }
    }
    EXPECT_GT(tried, 40) << name_of(form.kind);
  }
}

// GPipe's makespan with uneven stages is exact: all stages once, and the slowest of each direction
// for the other micro-batches.
TEST(Pipeline, OfUnevenStagesWaitsForTheSlowest) {
  const Pipeline pipeline = make_pipeline(PipelineKind::gpipe, {.ranks = 4, .micro_batches = 6});
  const std::vector<StageCosts> costs{{3, 2, 2}, {5, 4, 1}, {2, 9, 3}, {4, 1, 1}};
  EXPECT_EQ(time_pipeline(pipeline, costs).makespan, (3 + 5 + 2 + 4) + (4 + 5 + 12 + 2) + 5 * 17);
  // A message on each of the three ways up and down.
  EXPECT_EQ(time_pipeline(pipeline, costs, 7).makespan, 14 + 23 + 85 + 6 * 7);
}

}  // namespace
}  // namespace zl
