// Messages of a tensor group beside products, in the words of Megatron-LM.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_file.h"
#include "scenarios/launch/launch.h"
#include "scenarios/launch/megatron.h"

namespace zl {
namespace {

TEST(TensorOverlap, IsReadFromMegatronAndWrittenForIt) {
  const std::string script =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 16 --micro-batch-size 2 "
      "--global-batch-size 16 --bf16 --lr 6e-5 --tensor-model-parallel-size 4 ";
  const ImportContext open{.infer_ranks = true};
  const auto tensor_of = [&](const std::string& more) {
    return import_megatron(script + more, "args.sh", open).strategy.tensor;
  };
  EXPECT_EQ(tensor_of("--sequence-parallel"),
            (TensorConfig{.ranks = 4, .sequence_parallel = true}));
  EXPECT_EQ(tensor_of("--sequence-parallel --tp-comm-overlap"),
            (TensorConfig{.ranks = 4, .sequence_parallel = true, .overlap = true}));
  EXPECT_THROW(tensor_of("--tp-comm-overlap"), Error);

  const LaunchFacts facts{
      .model = load_model("llama3-8b"), .ranks = 8, .node_devices = 8, .sequence_length = 4096};
  Strategy strategy =
      load_strategy(
          "zero-1",
          {.ranks = 2, .precision = DType::bf16, .micro_batch = 1, .gradient_accumulation = 8})
          .strategy;
  strategy.tensor = {.ranks = 4, .sequence_parallel = true, .overlap = true};
  const std::string text = write_launch(LaunchSoftware::megatron, strategy, facts).text;
  EXPECT_NE(text.find("--tp-comm-overlap"), std::string::npos) << text;
  EXPECT_TRUE(
      import_megatron(text, "args.sh", {.model = &facts.model, .infer_ranks = true}).strategy ==
      strategy);
  strategy.tensor.sequence_parallel = false;
  EXPECT_THROW(write_launch(LaunchSoftware::megatron, strategy, facts), Error);
}

}  // namespace
}  // namespace zl
