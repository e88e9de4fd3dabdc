// Pipelines that cannot be, by shape or by their lists, are refused by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "core/pipeline/pipeline_times.h"

namespace zl {
namespace {

std::string refusal(const std::function<void()>& call, ErrorCode code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "accepted";
}

std::string shape_refusal(PipelineKind kind, PipelineShape shape) {
  return refusal([&] { make_pipeline(kind, shape); }, ErrorCode::invalid);
}

TEST(PipelineShapes, ThatCannotBeNameKeyValueAndFix) {
  EXPECT_EQ(shape_refusal(PipelineKind::zb_v, {.ranks = 4, .micro_batches = 8, .chunks = 3}),
            "parallel.schedule: zb-v needs 2 virtual stages, parallel.virtual_stages is 3; set it "
            "to 2");
  EXPECT_EQ(
      shape_refusal(PipelineKind::one_f_one_b, {.ranks = 4, .micro_batches = 8, .chunks = 2}),
      "parallel.schedule: 1f1b has one stage a rank, parallel.virtual_stages is 2; set it to 1, or "
      "use interleaved");
  EXPECT_EQ(shape_refusal(PipelineKind::interleaved, {.ranks = 4, .micro_batches = 3, .chunks = 2}),
            "parallel.schedule: interleaved works on groups of 4 micro-batches, which must be 4 "
            "(the ranks) to 3 (the micro-batches); use at least 4 micro-batches");
  EXPECT_EQ(
      shape_refusal(PipelineKind::interleaved, {.ranks = 4, .micro_batches = 10, .chunks = 2}),
      "parallel.schedule: interleaved 10 micro-batches leave a last group of 2, fewer than "
      "the 4 ranks; use 8 or 12 micro-batches");
  EXPECT_EQ(
      shape_refusal(PipelineKind::interleaved_zb, {.ranks = 4, .micro_batches = 10, .chunks = 2}),
      "parallel.schedule: interleaved-zb needs a multiple of 4 micro-batches, there are 10; "
      "use 8 or 12");
  EXPECT_EQ(shape_refusal(PipelineKind::dualpipe_v, {.ranks = 4, .micro_batches = 7, .chunks = 2}),
            "parallel.schedule: dualpipe-v needs two micro-batches for each of its 4 ranks, there "
            "are 7; use at least 8");
  EXPECT_EQ(shape_refusal(PipelineKind::gpipe, {.ranks = 0}),
            "parallel.pipeline: 0 is not positive; use 1 or more");
}

std::string list_refusal(const std::function<void(Pipeline&)>& spoil, int most_held = 0) {
  Pipeline pipeline = make_pipeline(PipelineKind::one_f_one_b, {.ranks = 2, .micro_batches = 3});
  spoil(pipeline);
  return refusal([&] { check_pipeline(pipeline, most_held); }, ErrorCode::infeasible);
}

// 1F1B of two ranks: F0 F1 B0 F2 B1 B2 and F0 B0 F1 B1 F2 B2.
TEST(PipelineLists, ThatCannotRunAreNamed) {
  EXPECT_EQ(list_refusal([](Pipeline& p) { p.work[1].pop_back(); }),
            "parallel.schedule: 1f1b, rank 1: never runs I2 of stage 1");
  EXPECT_EQ(list_refusal([](Pipeline& p) { p.work[0].push_back(p.work[0].front()); }),
            "parallel.schedule: 1f1b, rank 0: runs F0 of stage 0 twice");
  EXPECT_EQ(list_refusal([](Pipeline& p) { p.work[0].push_back(p.work[1].front()); }),
            "parallel.schedule: 1f1b, rank 0: runs F0 of stage 1, which rank 1 has");
  EXPECT_EQ(list_refusal([](Pipeline& p) {
              p.work[0].push_back({WorkKind::forward, 3, 0});
            }),
            "parallel.schedule: 1f1b, rank 0: F3 of stage 0 does not exist");
  EXPECT_EQ(list_refusal([](Pipeline& p) { std::swap(p.work[0][0], p.work[0][1]); }),
            "parallel.schedule: 1f1b, rank 0: sends F1 of stage 1 where rank 1 takes F0 of stage "
            "1");
  EXPECT_EQ(list_refusal([](Pipeline& p) {
              std::rotate(p.work[0].begin(), p.work[0].begin() + 2, p.work[0].begin() + 3);
            }),
            "parallel.schedule: 1f1b deadlocks: each waits for another: rank 0 at backward of "
            "micro-batch 0 in stage 0, rank 1 at forward of micro-batch 0 in stage 1");
  EXPECT_EQ(list_refusal([](Pipeline&) {}, 1),
            "parallel.schedule: 1f1b, rank 0: holds 2 forwards, at most 1 are allowed");
  EXPECT_EQ(list_refusal([](Pipeline&) {}, 2), "accepted");
}

// The weights' half before the half that it needs.
TEST(PipelineLists, WithHalvesInTheWrongOrderDeadlock) {
  Pipeline pipeline = make_pipeline(PipelineKind::zb_h1, {.ranks = 1, .micro_batches = 1});
  ASSERT_EQ(to_text(pipeline, 0), "F0 I0 W0");
  std::swap(pipeline.work[0][1], pipeline.work[0][2]);
  EXPECT_EQ(refusal([&] { check_pipeline(pipeline); }, ErrorCode::infeasible),
            "parallel.schedule: zb-h1 deadlocks: each waits for another: rank 0 at weight gradient "
            "of micro-batch 0 in stage 0");
}

TEST(PipelineKinds, HaveTheNamesOfTheField) {
  for (int i = 0; i < kPipelineKinds; ++i) {
    const auto kind = static_cast<PipelineKind>(i);
    EXPECT_EQ(pipeline_kind(name_of(kind)), kind);
  }
  EXPECT_EQ(pipeline_kind("1F1B"), std::nullopt);
  EXPECT_STREQ(name_of(PipelineKind::interleaved_zb), "interleaved-zb");
}

}  // namespace
}  // namespace zl
