// Attention over layouts of blocks against float64 sums computed elsewhere: sparse_attention.json,
// whose inputs are sines of the index.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "backends/cpu/ops/ops.h"
#include "core/base/files.h"
#include "core/model/block_layouts.h"
#include "core/ops/attention.h"

namespace zl::test {
namespace {

constexpr AttentionShape kShape{1, 128, 2, 2, 8};
constexpr std::int64_t kWidth = 16;

std::vector<float> sines(double step, double first) {
  std::vector<float> values(128 * kWidth);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(std::sin(step * static_cast<double>(i) + first));
  }
  return values;
}

template <class T>
TensorView view_of(std::vector<T>& values, DType dtype, const Shape& shape) {
  return {reinterpret_cast<std::byte*>(values.data()), dtype, shape};
}

struct Case {
  const char* name;
  SparseAttentionConfig config;
  std::int32_t length = 128;
};

std::vector<Case> cases() {
  using enum SparseMode;
  const auto uni = [](SparseMode mode) {
    SparseAttentionConfig config;
    config.mode = mode;
    config.bidirectional = false;
    return config;
  };
  const auto both = [](SparseMode mode) {
    SparseAttentionConfig config;
    config.mode = mode;
    return config;
  };
  SparseAttentionConfig whole = uni(layout), windows = both(variable);
  whole.rows.assign(8, "########");
  windows.local_window_blocks = {2, 4};
  return {{"dense causal", whole},
          {"fixed bi L4 g1", both(fixed)},
          {"fixed uni L4 g1", uni(fixed)},
          {"bslongformer w3 g[0]", both(bslongformer)},
          {"bslongformer w3 g[0], last 21 keys padded", both(bslongformer), 107},
          {"local_sliding uni w3", uni(local_sliding)},
          {"variable lw[2,4] g[0]", windows}};
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float x : values) sum += double{x} * double{x};
  return std::sqrt(sum);
}

// A [128, 16] part of packed rows: 0 q, 1 k, 2 v.
std::vector<float> part(const std::vector<float>& packed, std::int64_t which) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < 128; ++row) {
    const auto first = packed.begin() + row * 3 * kWidth + which * kWidth;
    values.insert(values.end(), first, first + kWidth);
  }
  return values;
}

void expect_row(const nlohmann::json& golden, const std::vector<float>& values,
                std::int64_t first) {
  for (std::int64_t d = 0; d < 8; ++d) {
    EXPECT_NEAR(values[static_cast<std::size_t>(first + d)], golden[d].get<double>(), 1e-5);
  }
}

TEST(SparseAttentionGolden, EveryLayoutGivesItsSums) {
  const auto golden = nlohmann::json::parse(
      read_file(std::string(ZL_SOURCE_DIR) + "/tests/golden/models/sparse_attention.json"));
  std::vector<float> qkv;
  const std::vector<float> q = sines(0.37, 0), k = sines(0.51, 1), v = sines(0.73, 2);
  for (std::int64_t row = 0; row < 128; ++row) {
    for (const auto* from : {&q, &k, &v}) {
      qkv.insert(qkv.end(), from->begin() + row * kWidth, from->begin() + (row + 1) * kWidth);
    }
  }
  std::vector<float> dout = sines(0.29, 3);
  ASSERT_EQ(golden["cases"].size(), cases().size());
  for (std::size_t i = 0; i < cases().size(); ++i) {
    const Case one = cases()[i];
    const nlohmann::json& want = golden["cases"][i];
    SCOPED_TRACE(one.name);
    ASSERT_EQ(want["name"], one.name);
    const auto layouts = block_layouts(one.config, {.sequence = 128, .heads = 2});
    EXPECT_EQ(layouts.front().active(), want["active_blocks"].get<std::int64_t>());
    BlockTable table = block_table(layouts, !one.config.bidirectional);
    if (one.length == 128) {
      EXPECT_EQ(table.pairs, want["active_elements"].get<std::int64_t>());
    }
    std::vector<std::int32_t> lengths = {one.length};
    std::vector<float> out(128 * kWidth), lse(256), delta(256), dqkv(qkv.size());
    const auto words = static_cast<std::int64_t>(table.words.size());
    const AttentionMask mask = AttentionMask::sparse(
        view_of(table.words, DType::i32, {words}), table, 2, !one.config.bidirectional,
        one.length == 128 ? TensorView{} : view_of(lengths, DType::i32, {1}));
    const AttentionForward forward{.qkv = packed_qkv(view_of(qkv, DType::f32, {128, 48}), kShape),
                                   .out = view_of(out, DType::f32, {128, kWidth}),
                                   .lse = view_of(lse, DType::f32, {1, 2, 128}),
                                   .shape = kShape,
                                   .scale = 1 / std::sqrt(8.0),
                                   .dropout = {},
                                   .mask = mask};
    forward.validate();
    cpu::execute(forward, {1});
    cpu::execute(AttentionBackward{.dout = view_of(dout, DType::f32, {128, kWidth}),
                                   .out = forward.out,
                                   .qkv = forward.qkv,
                                   .lse = forward.lse,
                                   .dqkv = packed_qkv(view_of(dqkv, DType::f32, {128, 48}), kShape),
                                   .delta = view_of(delta, DType::f32, {1, 2, 128}),
                                   .shape = kShape,
                                   .scale = forward.scale,
                                   .dropout = {},
                                   .mask = mask},
                 {1});
    double sum = 0;
    for (const float x : out) sum += x;
    EXPECT_NEAR(sum, want["out_sum"].get<double>(), 1e-4);
    EXPECT_NEAR(norm(out), want["out_l2"].get<double>(), 1e-5);
    EXPECT_NEAR(norm(part(dqkv, 0)), want["dq_l2"].get<double>(), 1e-5);
    EXPECT_NEAR(norm(part(dqkv, 1)), want["dk_l2"].get<double>(), 1e-5);
    EXPECT_NEAR(norm(part(dqkv, 2)), want["dv_l2"].get<double>(), 1e-5);
    expect_row(want["out[77,1]"], out, 77 * kWidth + 8);
    expect_row(want["dk[5,0]"], part(dqkv, 1), 5 * kWidth);
    EXPECT_NEAR(lse[77], want["lse[0,77]"].get<double>(), 1e-5);
  }
}

}  // namespace
}  // namespace zl::test
