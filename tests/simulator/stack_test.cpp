#include "simulator/cluster/stack.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/ops/op.h"
#include "simulator/cost/price.h"
#include "simulator/timeline.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::kMillisecond;
using test::plain_cluster;
using test::TraceBuilder;

const std::string kText = R"({"schema": 1, "name": "half", "launch_seconds": 2e-3,
  "step_seconds": 5e-3, "gemm": 0.5, "memory": 0.25, "links": 0.2,
  "materialized_attention": true, "overlap_loss": 0.4, "step_error": 0.3})";

std::string message_of(const std::string& from, const std::string& to) {
  std::string text = kText;
  text.replace(text.find(from), from.size(), to);
  try {
    parse_stack(text, "half.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "no error";
}

TEST(Stack, ErrorsNameTheKeyAndTheValue) {
  EXPECT_EQ(message_of("\"gemm\": 0.5", "\"gemm\": 0"), "half.json: stack.gemm: 0 is not above 0");
  EXPECT_NE(message_of("\"gemm\": 0.5", "\"gemm\": 1.5").find("stack.gemm: 1.5"),
            std::string::npos);
  EXPECT_NE(message_of("\"links\": 0.2,", "").find("stack.links: is missing"), std::string::npos);
  EXPECT_NE(message_of("\"memory\"", "\"memry\": 1, \"memory\"").find("nearest"),
            std::string::npos);
  EXPECT_NE(message_of("\"schema\": 1", "\"schema\": 2").find("stack.schema"), std::string::npos);
  EXPECT_NE(message_of("{", "[").find("half.json:1:10: malformed JSON"), std::string::npos);
}

TEST(Stack, EveryFileOfTheCatalogueParses) {
  const std::string folder = std::string(ZL_SOURCE_DIR) + "/scenarios/catalog/stacks";
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const Stack stack = parse_stack(read_file(file.path().string()), file.path().string());
    EXPECT_EQ(stack.name, file.path().stem());
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(Stack, RatesBecomeSharesOfTheClusters) {
  const Stack half = parse_stack(kText, "half.json");
  const ClusterSpec plain = plain_cluster(2), slow = with_stack(plain, half);
  const auto ratio = [&](const TraceEvent& event) {
    return static_cast<double>(op_time(event, slow).picoseconds) /
           static_cast<double>(op_time(event, plain).picoseconds);
  };
  TraceEvent gemm;
  gemm.kind = kOpKind<Gemm>;
  gemm.m = gemm.n = gemm.k = 1000;
  EXPECT_NEAR(ratio(gemm), 2, 1e-6);
  TraceEvent stream;
  stream.kind = kOpKind<NormForward>;
  stream.bytes_read = 1'000'000'000;
  EXPECT_NEAR(ratio(stream), 4, 1e-6);
  TraceBuilder wire;
  EXPECT_NEAR(ratio(wire.collective(kMain, CollectiveKind::all_gather, 1'000'000'000, 2)), 5, 0.05);
}

TEST(Stack, TheHostIssuesOpsAndEndsStepsMoreSlowly) {
  TraceBuilder trace;
  for (int i = 0; i < 3; ++i) trace.op(kMain, 0.001);
  ClusterSpec cluster = with_stack(plain_cluster(), parse_stack(kText, "half.json"));
  const Timeline timeline = price(trace.trace, cluster);
  ASSERT_EQ(timeline.steps.size(), 1u);
  // Each op of a microsecond waits for the host; then the end of the step.
  EXPECT_EQ(timeline.total, 11 * kMillisecond);
  EXPECT_EQ(timeline.steps[0].spread, 0.3);
}

// By hand: 2 heads, 100 tokens, head size 8, fp16. 20,000 scores of 6 x 2 + 1 bytes forward and
// 9 x 2 + 1 backward; two products of 2 x 20,000 x 8 FLOPs forward, four backward.
TEST(Stack, MaterializedAttentionPaysForEveryScore) {
  const ClusterSpec cluster = with_stack(plain_cluster(), parse_stack(kText, "half.json"));
  TraceEvent event;
  event.dtype = DType::f16;
  event.m = 2;
  event.n = 100;
  event.k = 8;
  event.kind = kOpKind<AttentionForward>;
  const double forward = 2 * 2 * 20'000 * 8 / 0.5e12 + 20'000 * 13 / 0.25e12;
  EXPECT_NEAR(static_cast<double>(op_time(event, cluster).picoseconds), forward * 1e12, 1);
  event.kind = kOpKind<AttentionBackward>;
  const double backward = 4 * 2 * 20'000 * 8 / 0.5e12 + 20'000 * 19 / 0.25e12;
  EXPECT_NEAR(static_cast<double>(op_time(event, cluster).picoseconds), backward * 1e12, 1);
}

TEST(Stack, MeasuredMachinesKeepTheirPrices) {
  const Stack half = parse_stack(kText, "half.json");
  ClusterSpec measured = plain_cluster();
  measured.calibration = Calibration{};
  ClusterSpec host = plain_cluster();
  host.compute_is_host = true;
  for (const ClusterSpec& cluster : {measured, host}) {
    try {
      with_stack(cluster, half);
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("run.stack: \"half\""), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace zl::sim
