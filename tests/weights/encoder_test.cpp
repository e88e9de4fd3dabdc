// Encoders against transformers 5.23: loss, logits, gradients by tensor; padding reaches nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/weights/zoo.h"

namespace zl::test {
namespace {

Strategy plain_descent(std::int64_t micro_batch) {
  Strategy s = zoo_strategy(micro_batch);
  s.gradient_clipping = 0;
  return s;
}

// What one step of plain descent says of a batch.
struct EncoderStep {
  double loss = 0;
  std::vector<std::vector<float>> before, after;
};

void run_engine(const std::string& name, const Strategy& s, std::int64_t length,
                const std::function<void(Engine&)>& body) {
  const ModelConfig model = zoo_model(name);
  const ModelWeights weights(zoo(name), model);
  cpu::make_world({1, 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    Engine engine(context, model, s, length, InitialWeights(1, &weights));
    body(engine);
  });
}

std::vector<std::vector<float>> values_of(Engine& engine) {
  std::vector<std::vector<float>> all;
  for (std::size_t p = 0; p < engine.parameters().specs.size(); ++p) {
    all.push_back(engine.gather_parameter(static_cast<int>(p)));
  }
  return all;
}

// One micro-batch for each of the batches.
EncoderStep step_of(const std::string& name, const std::vector<Batch>& batches, std::int64_t rows,
                    std::int64_t length) {
  Strategy s = plain_descent(rows);
  s.gradient_accumulation = static_cast<std::int64_t>(batches.size());
  EncoderStep step;
  run_engine(name, s, length, [&](Engine& engine) {
    step.before = values_of(engine);
    for (int micro = 0; micro < static_cast<int>(batches.size()); ++micro) {
      engine.load(micro, batches[static_cast<std::size_t>(micro)]);
      engine.forward(micro);
      engine.backward();
    }
    step.loss = engine.step().loss;
    step.after = values_of(engine);
  });
  return step;
}

class ZooEncoders : public testing::TestWithParam<std::string> {
 protected:
  const nlohmann::json golden_ = zoo_golden(GetParam());
  const ZooBatch batch_ = zoo_encoder_batch(golden_);
};

TEST_P(ZooEncoders, HaveTheParametersOfTransformers) {
  const ModelConfig model = zoo_model(GetParam());
  EXPECT_EQ(model.parameters(), golden_["parameters"].get<std::int64_t>());
  EXPECT_EQ(ParameterTable(model).count(), golden_["parameters"].get<std::int64_t>());
}

TEST_P(ZooEncoders, LossAndGradientsAreThoseOfTransformers) {
  const EncoderStep step = step_of(GetParam(), {batch_.ids}, batch_.rows, batch_.length);
  EXPECT_NEAR(step.loss, golden_["loss"].get<double>(), 2e-6);
  const ModelConfig model = zoo_model(GetParam());
  const std::string type = read_model_type(zoo(GetParam()));
  const double rate = zoo_strategy(1).optimizer.lr;
  std::size_t compared = 0;
  for (const ParameterSpec& spec : ParameterTable(model).specs) {
    const std::int64_t columns = spec.count() / spec.shape[0];
    for (const TensorPiece& piece : tensors_of(spec, model, type)) {
      double squares = 0;
      for (std::int64_t i = 0; i < piece.rows * columns; ++i) {
        const auto at = static_cast<std::size_t>(piece.first_row * columns + i);
        const double moved = static_cast<double>(step.before[spec.number][at]) -
                             static_cast<double>(step.after[spec.number][at]);
        squares += moved / rate * (moved / rate);
      }
      ASSERT_TRUE(golden_["grad_l2"].contains(piece.name)) << piece.name;
      const double expected = golden_["grad_l2"][piece.name].get<double>();
      EXPECT_NEAR(std::sqrt(squares), expected, 1e-4 * expected + 2e-6) << piece.name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, golden_["grad_l2"].size());
}

TEST_P(ZooEncoders, LogitsAreThoseOfTransformers) {
  run_engine(GetParam(), plain_descent(batch_.rows), batch_.length, [&](Engine& engine) {
    if (zoo_model(GetParam()).head == HeadKind::label) {
      const auto logits = engine.label_logits(batch_.ids);
      ASSERT_EQ(logits.size(), 2u);
      for (std::size_t row = 0; row < 2; ++row) {
        for (std::size_t label = 0; label < 3; ++label) {
          EXPECT_NEAR(logits[row][label], golden_["logits"][row][label].get<double>(), 1.5e-5);
        }
      }
      return;
    }
    // The losses of a row's targets differ by their logits alone.
    const std::int64_t places[] = {1, batch_.length + 2};
    for (std::size_t i = 0; i < 2; ++i) {
      std::vector<double> losses;
      for (std::int32_t token = 0; token < 6; ++token) {
        Batch one = batch_.ids;
        one.targets.assign(one.tokens.size(), -1);
        one.targets[static_cast<std::size_t>(places[i])] = token;
        losses.push_back(engine.evaluate(one).mean());
      }
      for (std::size_t token = 1; token < 6; ++token) {
        const nlohmann::json& want = golden_["logits"][i];
        EXPECT_NEAR(losses[0] - losses[token], want[token].get<double>() - want[0].get<double>(),
                    1.5e-5)
            << "token " << token;
      }
    }
  });
}

// Other tokens, and other segments, behind the end of the second sequence: every bit of the weights
// after the step stays.
TEST_P(ZooEncoders, NothingOfThePaddingIsSeen) {
  const EncoderStep step = step_of(GetParam(), {batch_.ids}, batch_.rows, batch_.length);
  Batch other = batch_.ids;
  if (other.segments.empty()) other.segments.assign(other.tokens.size(), 0);
  for (std::size_t i = 13; i < 16; ++i) other.tokens[i] = 7;
  const EncoderStep same = step_of(GetParam(), {other}, batch_.rows, batch_.length);
  EXPECT_EQ(same.loss, step.loss);
  EXPECT_EQ(same.after, step.after);
  other.lengths[1] = 8;
  EXPECT_GT(std::abs(step_of(GetParam(), {other}, batch_.rows, batch_.length).loss - step.loss),
            1e-3);
}

// Shorter rows, without padding, mean the same.
TEST_P(ZooEncoders, PaddingIsAsIfItWereNotThere) {
  Batch alone;
  const auto cut = [&](const std::vector<std::int32_t>& of, std::vector<std::int32_t>& out) {
    if (!of.empty()) out.assign(of.begin() + 8, of.begin() + 13);
  };
  cut(batch_.ids.tokens, alone.tokens);
  cut(batch_.ids.segments, alone.segments);
  Batch padded = batch_.ids;
  if (padded.targets.size() == 2) {
    alone.targets = {padded.targets[1]};
    padded.targets[0] = -1;
  } else {
    cut(batch_.ids.targets, alone.targets);
    std::fill_n(padded.targets.begin(), 8, -1);
  }
  const double with = step_of(GetParam(), {padded}, 2, batch_.length).loss;
  EXPECT_NEAR(step_of(GetParam(), {alone}, 1, 5).loss, with, 5e-6);
}

INSTANTIATE_TEST_SUITE_P(, ZooEncoders, testing::ValuesIn(zoo_encoders()), zoo_name);

// Two masked tokens in one row, one in the other: the mean is over all three, whoever has them.
TEST(MaskedTokens, AreAveragedOverTheWholeStep) {
  for (const std::string name : {"bert_mlm", "roberta_mlm"}) {
    const nlohmann::json golden = zoo_golden(name);
    const ZooBatch whole = zoo_encoder_batch(golden);
    std::vector<Batch> rows(2);
    for (std::size_t row = 0; row < 2; ++row) {
      const auto cut = [&](const std::vector<std::int32_t>& of, std::vector<std::int32_t>& out) {
        if (of.empty()) return;
        out.assign(of.begin() + static_cast<std::ptrdiff_t>(8 * row),
                   of.begin() + static_cast<std::ptrdiff_t>(8 * row + 8));
      };
      cut(whole.ids.tokens, rows[row].tokens);
      cut(whole.ids.targets, rows[row].targets);
      cut(whole.ids.segments, rows[row].segments);
      rows[row].lengths = {whole.ids.lengths[row]};
    }
    const double of_means = step_of(name, rows, 1, 8).loss;
    EXPECT_GT(std::abs(of_means - golden["loss"].get<double>()), 1e-2);
    for (Batch& each : rows) each.step_rows = 3;
    const EncoderStep apart = step_of(name, rows, 1, 8);
    const EncoderStep together = step_of(name, {whole.ids}, 2, 8);
    EXPECT_NEAR(apart.loss, golden["loss"].get<double>(), 2e-6);
    for (std::size_t p = 0; p < apart.after.size(); ++p) {
      for (std::size_t i = 0; i < apart.after[p].size(); ++i) {
        EXPECT_NEAR(apart.after[p][i], together.after[p][i], 2e-6);
      }
    }
  }
}

// A model that was trained for another task, or for none: its head is drawn, the rest is read.
TEST(EncoderWeights, MayLackTheHead) {
  ModelConfig model = zoo_model("bert_mlm");
  model.head = HeadKind::label;
  model.labels = 4;
  const ModelWeights weights(zoo("bert_mlm"), model);
  EXPECT_EQ(weights.missing(),
            (std::vector<std::string>{"bert.pooler.dense.weight", "bert.pooler.dense.bias",
                                      "classifier.weight", "classifier.bias"}));
  const ParameterTable table(model);
  EXPECT_FALSE(weights.has(table.head));
  EXPECT_TRUE(weights.has(table.token_embedding));
}

}  // namespace
}  // namespace zl::test
