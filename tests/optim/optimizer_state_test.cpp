// What an optimizer keeps: which ranges one op updates, and what a checkpoint gets of it.
#include "core/optim/optimizer_state.h"

#include <gtest/gtest.h>

#include <functional>

#include "backends/cpu/world.h"
#include "core/base/error.h"
#include "core/optim/optimizer.h"

namespace zl::test {
namespace {

class Names : public StateArchive {
 public:
  bool restores() const override { return false; }
  void tensor(const std::string& name, const TensorView& view, Place) override {
    if (!view.empty()) all.push_back(name);
  }
  void number(const std::string& name, double&) override { all.push_back(name); }

  std::vector<std::string> all;
};

std::vector<std::string> archived(OptimizerState& state) {
  Names names;
  state.archive(names, "o.");
  return names.all;
}

// Three ranges of 4, 2 and 3 elements, the last one apart from the others.
struct Ranges {
  Ranges(RankContext& context, DType dtype) {
    weights = context.allocate(dtype, Shape{10}, MemoryTag::parameter, {"test"});
    gradients = context.allocate(dtype, Shape{10}, MemoryTag::gradient, {"test"});
    std::int64_t at = 0;
    for (const std::int64_t count : {4, 2, 3}) {
      if (count == 3) ++at;
      all.push_back({weights.view.flat(at, count), gradients.view.flat(at, count),
                     static_cast<int>(all.size())});
      at += count;
    }
  }
  Tensor weights, gradients;
  std::vector<UpdateRange> all;
};

void on_one_rank(const std::function<void(RankContext&)>& program) {
  cpu::make_world({.ranks = 1, .threads_per_rank = 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    program(context);
  });
}

TEST(OptimizerState, ContiguousNeighboursAreOnePiece) {
  on_one_rank([](RankContext& context) {
    const Ranges ranges(context, DType::f32);
    OptimizerState state(context, ranges.all, true, {});
    ASSERT_EQ(state.pieces().size(), 2u);
    EXPECT_EQ(state.pieces()[0].count(), 6);
    EXPECT_EQ(state.pieces()[1].offset, 6);
    EXPECT_EQ(state.pieces()[1].range, 2u);
    EXPECT_EQ(state.elements(), 9);
    EXPECT_FALSE(state.has_masters());
    EXPECT_EQ(state.master(1).data, ranges.all[1].weights.data);
    EXPECT_EQ(archived(state),
              (std::vector<std::string>{"o.steps", "o.first_moment", "o.second_moment"}));
    OptimizerState apart(context, ranges.all, true, {.merge = false});
    EXPECT_EQ(apart.pieces().size(), 3u);
  });
}

TEST(OptimizerState, HalfPrecisionWeightsHaveMasters) {
  on_one_rank([](RankContext& context) {
    const Ranges ranges(context, DType::bf16);
    OptimizerState state(context, ranges.all, true, {.first = "momentum", .second = nullptr});
    EXPECT_TRUE(state.has_masters());
    EXPECT_EQ(state.master(2).data, state.views().master.flat(6, 3).data);
    EXPECT_EQ(state.pieces()[1].copy.data, ranges.all[2].weights.data);
    EXPECT_EQ(archived(state), (std::vector<std::string>{"o.steps", "o.master", "o.first_moment"}));
  });
}

TEST(OptimizerState, WhatWasGivenIsTheGivers) {
  on_one_rank([](RankContext& context) {
    const Ranges ranges(context, DType::bf16);
    const Tensor given = context.allocate(DType::f32, Shape{9}, MemoryTag::optimizer, {"test"});
    const std::int64_t before = context.ledger().total(MemorySpace::device);
    OptimizerState state(context, ranges.all, false, {}, {given, given, given});
    EXPECT_EQ(context.ledger().total(MemorySpace::device), before);
    EXPECT_EQ(state.master(1).data, given.view.flat(4, 2).data);
    EXPECT_EQ(archived(state), std::vector<std::string>{"o.steps"});
  });
}

TEST(OptimizerState, TheHostRefusesWhatItHasNoKernelsFor) {
  on_one_rank([](RankContext& context) {
    OptimizerConfig config;
    config.kind = OptimizerKind::lamb;
    const Ranges ranges(context, DType::f32);
    EXPECT_THROW(make_host_optimizer(context, config, ranges.all, {}), Error);
  });
}

}  // namespace
}  // namespace zl::test
