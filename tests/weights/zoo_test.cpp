// Real weights mean here what they mean to transformers: losses, gradients by tensor, and the same
// values whoever holds them.
#include "tests/weights/zoo.h"

#include <cmath>
#include <map>
#include <mutex>

#include "core/train/executor.h"

namespace zl::test {
namespace {

class Zoo : public testing::TestWithParam<std::string> {};

// The loss of the batch, and by how much one step of plain descent changes each parameter.
struct Step {
  double loss = 0;
  std::vector<std::vector<float>> before, after;
};

Step take_step(const std::string& name) {
  const ZooBatch batch = zoo_batch(zoo_golden(name));
  const ModelConfig model = zoo_model(name);
  const ModelWeights weights(zoo(name), model);
  Strategy s = zoo_strategy(batch.rows);
  s.gradient_clipping = 0;
  Step step;
  cpu::make_world({1, 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    Engine engine(context, model, s, batch.length, InitialWeights(1, &weights));
    const auto values = [&engine] {
      std::vector<std::vector<float>> all;
      for (std::size_t p = 0; p < engine.parameters().specs.size(); ++p) {
        all.push_back(engine.gather_parameter(static_cast<int>(p)));
      }
      return all;
    };
    step.before = values();
    engine.forward(batch.ids.tokens, batch.ids.targets);
    engine.backward();
    step.loss = engine.step().loss;
    step.after = values();
  });
  return step;
}

TEST_P(Zoo, LossIsThatOfTransformers) {
  const nlohmann::json golden = zoo_golden(GetParam());
  EXPECT_NEAR(take_step(GetParam()).loss, golden["loss"].get<double>(), 2e-6);
}

// Plain descent moves a weight by its gradient times the rate.
TEST_P(Zoo, GradientNormsByTensorAreThoseOfTransformers) {
  const nlohmann::json golden = zoo_golden(GetParam());
  const ModelConfig model = zoo_model(GetParam());
  const Step step = take_step(GetParam());
  const double rate = zoo_strategy(1).optimizer.lr;
  const std::string type = read_model_type(zoo(GetParam()));
  const std::int64_t frozen = frozen_row(GetParam());
  std::size_t compared = 0;
  for (const ParameterSpec& spec : ParameterTable(model).specs) {
    const std::int64_t columns = spec.count() / spec.shape[0];
    const bool is_table = spec.name == "embedding.token" && frozen >= 0;
    for (const TensorPiece& piece : tensors_of(spec, model, type)) {
      ++compared;
      if (is_table && model.tied_embeddings) continue;  // the head trains that row there too
      double squares = 0;
      for (std::int64_t i = 0; i < piece.rows * columns; ++i) {
        const auto at = static_cast<std::size_t>(piece.first_row * columns + i);
        if (is_table && i / columns == frozen) continue;
        const double moved = static_cast<double>(step.before[spec.number][at]) -
                             static_cast<double>(step.after[spec.number][at]);
        squares += moved / rate * (moved / rate);
      }
      ASSERT_TRUE(golden["grad_l2"].contains(piece.name)) << piece.name;
      const double expected = golden["grad_l2"][piece.name].get<double>();
      EXPECT_NEAR(std::sqrt(squares), expected, 1e-4 * expected + 2e-6) << piece.name;
    }
  }
  EXPECT_EQ(compared, golden["grad_l2"].size());
}

// Twenty steps of AdamW with clipping, as tests/parity/zoo_steps.py has transformers take them.
TEST_P(Zoo, TrainsAsTransformersDoes) {
  const auto golden = nlohmann::json::parse(
      read_file(std::string(ZL_SOURCE_DIR) + "/tests/golden/models/zoo_steps.json"));
  const std::vector<double> expected = golden["losses"][GetParam()];
  const ZooBatch batch = zoo_batch(zoo_golden(GetParam()));
  const ModelConfig model = zoo_model(GetParam());
  const ModelWeights weights(zoo(GetParam()), model);
  Strategy s;
  s.name = "adamw";
  s.micro_batch = batch.rows;
  s.optimizer = {.kind = OptimizerKind::adamw, .lr = golden["lr"]};
  s.optimizer.weight_decay = golden["weight_decay"];
  s.gradient_clipping = golden["gradient_clipping"];
  std::vector<double> found;
  cpu::make_world({1, 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    Engine engine(context, model, s, batch.length, InitialWeights(1, &weights));
    for (std::size_t step = 0; step < expected.size(); ++step) {
      engine.forward(batch.ids.tokens, batch.ids.targets);
      engine.backward();
      found.push_back(engine.step().loss);
    }
  });
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(found[step], expected[step], 1e-5) << "step " << step + 1;
  }
  EXPECT_LT(found.back(), found.front() - 0.1);
}

INSTANTIATE_TEST_SUITE_P(, Zoo, testing::ValuesIn(zoo_decoders()), zoo_name);

// The weights as whole tensors, from ranks that each read what they hold.
std::vector<std::vector<float>> gathered(const std::string& name, const Strategy& s, int ranks) {
  const ModelConfig model = zoo_model(name);
  const ModelWeights weights(zoo(name), model);
  std::vector<std::vector<float>> all;
  std::mutex mutex;
  const Mesh mesh = mesh_of(s, ranks);
  cpu::make_world({ranks, 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator, {.mesh = mesh});
    Engine engine(context, model, s, 16, InitialWeights(1, &weights));
    engine.gather_model([&](const ParameterSpec&, std::vector<float> values) {
      const std::lock_guard lock(mutex);
      all.push_back(std::move(values));
    });
  });
  return all;
}

TEST(LoadedWeights, AreTheSameForEveryStageAndMesh) {
  for (const std::string name : {"gpt2", "llama_gqa"}) {
    const auto whole = gathered(name, zoo_strategy(1), 1);
    for (int stage = 0; stage <= 3; ++stage) {
      Strategy s = zoo_strategy(1);
      s.zero.stage = stage;
      EXPECT_EQ(gathered(name, s, 4), whole) << name << " stage " << stage;
    }
    Strategy tensor = zoo_strategy(1);
    tensor.tensor.ranks = 2;
    EXPECT_EQ(gathered(name, tensor, 2), whole) << name << " tensor";
    Strategy pipeline = zoo_strategy(1);
    pipeline.pipeline.ranks = 2;
    pipeline.gradient_accumulation = 2;
    EXPECT_EQ(gathered(name, pipeline, 2), whole) << name << " pipeline";
    Strategy offload = zoo_strategy(1);
    offload.optimizer.kind = OptimizerKind::adamw;
    offload.zero.stage = 3;
    offload.offload.optimizer = offload.offload.parameters = Tier::cpu;
    EXPECT_EQ(gathered(name, offload, 2), whole) << name << " offload";
  }
}

TEST(LoadedWeights, AreRoundedToTheComputeType) {
  Strategy s = zoo_strategy(1);
  s.optimizer.kind = OptimizerKind::adamw;
  const auto whole = gathered("gpt2", s, 1);
  s.precision.compute_dtype = DType::bf16;
  EXPECT_EQ(gathered("gpt2", s, 2), whole);  // the masters are not
}

}  // namespace
}  // namespace zl::test
