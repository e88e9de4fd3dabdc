// What the parts of the acceptance run share, where no GPU is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "scenarios/files/model_file.h"
#include "simulator/device.h"
#include "tests/gpu/kernels/table.h"
#include "tests/gpu/process.h"
#include "tests/gpu/training.h"

namespace zl::gpu {
namespace {

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(GpuProcess, ProgramsGiveTheirOutputOrTheirExitStatus) {
  EXPECT_EQ(run_program({"printf", "a\nb"}, 60), "a\nb");
  EXPECT_EQ(run_program({"sh", "-c", "printf x; exit 4"}, 60, {0, 4}), "x");
  const auto fails = [](const std::vector<std::string>& command, double seconds) {
    return error_of([&] { run_program(command, seconds); });
  };
  EXPECT_NE(fails({"sh", "-c", "exit 3"}, 60).find("exit status 3"), std::string::npos);
  EXPECT_NE(fails({"no-such-program"}, 60).find("no-such-program"), std::string::npos);
  EXPECT_NE(fails({"sleep", "600"}, 0.1).find("not done within"), std::string::npos);
}

TEST(GpuProcess, AWorkerAnswersLineByLineUntilItEnds) {
  Worker echo({"cat"});
  EXPECT_EQ(echo.ask({{"a", 1}}, 60), Json({{"a", 1}}));
  EXPECT_EQ(echo.ask({{"b", "x\ny"}}, 60), Json({{"b", "x\ny"}}));
  Worker ends({"sh", "-c", "exit 7"});
  EXPECT_NE(error_of([&] { ends.ask({}, 60); }).find("ended with status"), std::string::npos);
  EXPECT_NE(error_of([&] { ends.ask({}, 60); }).find("has ended"), std::string::npos);
  Worker silent({"sleep", "600"});
  EXPECT_NE(error_of([&] { silent.ask({}, 0.1); }).find("no answer within"), std::string::npos);
}

TEST(GpuTraining, FlopsOfATokenAndTheDataSheetsPeak) {
  // GPT-2 124M at T = 1024: 6 * 124,439,808 + 6 * 12 * 768 * 1024.
  EXPECT_EQ(flops_per_token(load_model("gpt2-124m"), 1024),
            6.0 * 124439808 + 6.0 * 12 * 768 * 1024);
  EXPECT_EQ(nominal_bf16_peak({{"name", "NVIDIA H200"}, {"memory_bytes", 150'000'000'000}}),
            9.89e14);
  EXPECT_EQ(nominal_bf16_peak({{"name", "GeForce 8800"}, {"memory_bytes", 768 << 20}}), 0);
}

// The command line that parts d and f use, on the simulator.
TEST(GpuTraining, EveryShapeIsPredictedAndOutOfMemoryIsAResult) {
  for (const TrainingShape& shape : kTrainingShapes) {
    const Json result = run_zerolab(ZL_PROGRAM, shape, "sim", 1, 4, 60, {"--cluster", "h200"});
    EXPECT_EQ(result.at("outcome"), "ok") << shape.name;
    EXPECT_GT(result.at("step_time_seconds").at("median"), 0) << shape.name;
    EXPECT_GT(result.at("tokens_per_second"), 0) << shape.name;
    EXPECT_GT(result.at("peak_bytes").at("device").at("total"), 0) << shape.name;
    EXPECT_GT(result.at("reserved_bytes"), 0) << shape.name;
  }
  const Json small = run_zerolab(ZL_PROGRAM, kTrainingShapes[0], "sim", 1, 4, 60,
                                 {"--cluster", "h200", "--device-memory", "1000000B"});
  EXPECT_EQ(small.at("outcome"), "out_of_memory");
}

// Tensors that are not there, ops that are checked and not run.
class DryBench final : public Bench {
 public:
  ~DryBench() override { clear(); }
  double seconds(const std::function<void()>&) override { return 0.5; }
  cuda::ExecContext context() const override { return {}; }

 private:
  Device& device() override { return device_; }
  sim::Device device_{{}, {}};
};

TEST(GpuKernels, EveryOpHasAValidRow) {
  DryBench bench;
  const std::vector<Row> rows = measure_table(bench, {4e12, 8e14, 5e13});
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
    const std::string start = std::string(op_name(kind)) + " ";
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(),
                            [&](const Row& row) { return row.name.starts_with(start); }))
        << start << "is not in the table";
  }
  // 124 M parameters: four f32 read, three f32 and a bf16 written.
  const auto adam = std::find_if(rows.begin(), rows.end(),
                                 [](const Row& row) { return row.name.starts_with("adam_step"); });
  ASSERT_NE(adam, rows.end());
  EXPECT_DOUBLE_EQ(adam->achieved, 124e6 * 30 / 0.5);
  EXPECT_DOUBLE_EQ(adam->share, 124e6 * 30 / 0.5 / 4e12);
  for (const Row& row : rows) {
    EXPECT_EQ(row.share == 0, row.limit == Limit::launch) << row.name;
    EXPECT_TRUE(std::isfinite(row.achieved)) << row.name;
  }
}

TEST(GpuReport, ASkippedPartIsNeitherPassedNorFailed) {
  Report report("none");
  EXPECT_EQ(report.verdict(), 0);
  report.fail("first");
  report.fail("second");
  EXPECT_EQ(report.verdict(), 1);
  Report skipped("none");
  skipped.skip("no card");
  EXPECT_EQ(skipped.verdict(), kSkipped);
  const Json json = skipped.json(1.5);
  EXPECT_EQ(json.at("outcome"), "skipped");
  EXPECT_EQ(json.at("reason"), "no card");
}

}  // namespace
}  // namespace zl::gpu
