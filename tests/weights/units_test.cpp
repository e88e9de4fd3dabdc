// Every family of decoders against transformers, by its units alone: loss, logits, and the gradient
// of every tensor.
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/model/architecture.h"
#include "core/model/stage.h"
#include "tests/weights/zoo.h"

namespace zl::test {
namespace {

// Every weight and gradient whole.
class PlainAccess final : public ParameterAccess {
 public:
  PlainAccess(RankContext& context, const ParameterTable& table)
      : written_(table.specs.size()), tied_(table.tied() ? table.head : -1) {
    const auto make = [&](const Shape& shape) {
      return context.allocate(DType::f32, shape, MemoryTag::activation, {"parameter"});
    };
    for (const ParameterSpec& spec : table.specs) {
      weights_.push_back(make(spec.shape));
      gradients_.push_back(make(spec.shape));
    }
    if (tied_ >= 0) head_ = make(table.specs[tied_].shape);
  }
  void enter(int, Pass) override {}
  void leave(int, Pass) override {}
  TensorView weight(int parameter) override { return weights_[parameter]; }
  // Of the token table first the head's where that is tied, then that of the tokens looked up.
  GradientTarget gradient(int parameter) override {
    const bool again = std::exchange(written_[parameter], char{1}) != 0;
    if (!again && parameter == tied_) return {head_, false};
    return {gradients_[parameter], again && parameter != tied_};
  }
  void gradient_ready(int) override {}
  TensorView gradient_view(int parameter) const { return gradients_[parameter]; }
  TensorView head_view() const { return head_; }

 private:
  std::vector<Tensor> weights_, gradients_;
  std::vector<char> written_;  // whether gradients have been asked for
  int tied_ = -1;
  Tensor head_;
};

// A model of the zoo with its weights on one CPU rank.
class UnitsOfZoo {
 public:
  UnitsOfZoo(RankHandle handle, const std::string& name)
      : context_(handle.device, handle.communicator),
        model_(zoo_model(name)),
        table_(model_),
        group_(context_, {}),
        access_(context_, table_),
        stage_(context_, access_,
               make_units(context_, access_, model_, group_, table_, 0, table_.units()),
               RecomputePlan({}, static_cast<int>(model_.layers))) {
    const ModelWeights weights(zoo(name), model_);
    for (const ParameterSpec& spec : table_.specs) {
      std::vector<float> values(static_cast<std::size_t>(spec.count()));
      weights.read(spec.number, 0, values);
      context_.upload(StreamId::compute, access_.weight(spec.number), values.data());
      context_.synchronize(StreamId::compute);
    }
  }

  // The mean loss over targets that are not -1; with `backward` the gradients too.
  double loss(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& targets,
              std::int64_t length, bool backward = false) {
    const auto rows = static_cast<std::int64_t>(tokens.size());
    MicroBatch micro;
    micro.geometry = {.batch = rows / length, .sequence = length, .train = false};
    Tensor ids[2], sum = context_.allocate(DType::f32, {1}, MemoryTag::activation, {"loss"});
    for (Tensor& each : ids) {
      each = context_.allocate(DType::i32, {rows}, MemoryTag::activation, {"ids"});
    }
    const float zero = 0;
    context_.upload(StreamId::compute, ids[0], tokens.data());
    context_.upload(StreamId::compute, ids[1], targets.data());
    context_.upload(StreamId::compute, sum, &zero);
    micro.ids = {ids[0], ids[1]};
    micro.loss.sum = sum;
    for (const std::int32_t target : targets) micro.loss.counted_rows += target >= 0 ? 1 : 0;
    if (backward) {
      stage_.forward(micro);
      stage_.backward(micro);
    } else {
      stage_.evaluate(micro);
    }
    float value = 0;
    context_.download(StreamId::compute, &value, sum);
    context_.synchronize(StreamId::compute);
    return value;
  }

  // Of the tokens 0 to 5 at one position, less that of token 0: the loss of a target is the same
  // for all but for its logit.
  std::vector<double> logits(const std::vector<std::int32_t>& tokens, std::int64_t length,
                             std::int64_t position) {
    std::vector<double> losses;
    for (std::int32_t token = 0; token < 6; ++token) {
      std::vector<std::int32_t> targets(tokens.size(), -1);
      targets[static_cast<std::size_t>(position)] = token;
      losses.push_back(loss(tokens, targets, length));
    }
    const double first = losses[0];
    for (double& each : losses) each = first - each;
    return losses;
  }

  const ParameterTable& table() const { return table_; }
  const ModelConfig& model() const { return model_; }
  // After a backward. frozen: the row of the token table whose looked-up tokens do not count.
  std::vector<double> gradient(int parameter, std::int64_t frozen) {
    std::vector<double> sum = values_of(access_.gradient_view(parameter));
    if (parameter != table_.token_embedding) return sum;
    for (std::int64_t c = 0; frozen >= 0 && c < model_.hidden; ++c) {
      sum[static_cast<std::size_t>(frozen * model_.hidden + c)] = 0;
    }
    if (!table_.tied()) return sum;
    const std::vector<double> head = values_of(access_.head_view());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += head[i];
    return sum;
  }

 private:
  std::vector<double> values_of(const TensorView& view) {
    std::vector<float> values(static_cast<std::size_t>(view.count()));
    context_.download(StreamId::compute, values.data(), view);
    context_.synchronize(StreamId::compute);
    return {values.begin(), values.end()};
  }

  RankContext context_;
  ModelConfig model_;
  ParameterTable table_;
  TensorGroup group_;
  PlainAccess access_;
  Stage stage_;
};

class ZooUnits : public testing::TestWithParam<std::string> {
 protected:
  template <class Check>
  void with_model(const Check& check) const {
    cpu::make_world({.ranks = 1})->run([&](RankHandle handle) {
      UnitsOfZoo model(handle, GetParam());
      check(model);
    });
  }
  static void expect_logits(const std::vector<double>& got, const nlohmann::json& want,
                            const std::string& what) {
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], want[i].get<double>() - want[0].get<double>(), 1.5e-5)
          << what << ", token " << i;
    }
  }

  const nlohmann::json golden_ = zoo_golden(GetParam());
  const ZooBatch batch_ = zoo_batch(golden_);
  const std::vector<std::int32_t>&tokens_ = batch_.ids.tokens, &targets_ = batch_.ids.targets;
};

TEST_P(ZooUnits, LossIsThatOfTransformers) {
  with_model([&](UnitsOfZoo& model) {
    EXPECT_EQ(model.model().parameters(), golden_["parameters"].get<std::int64_t>());
    EXPECT_EQ(model.table().count(), golden_["parameters"].get<std::int64_t>());
    const double loss = model.loss(tokens_, targets_, batch_.length);
    EXPECT_NEAR(loss, golden_["loss"].get<double>(), 2e-6);
    std::printf("%s: loss off by %.1e\n", GetParam().c_str(), loss - golden_["loss"].get<double>());
  });
}

TEST_P(ZooUnits, LogitsAreThoseOfTransformers) {
  with_model([&](UnitsOfZoo& model) {
    const std::int64_t length = batch_.length;
    const std::int64_t positions[] = {0, 1, length / 2, length - 1};
    const nlohmann::json& want = golden_["logits[b,t,0:6] t in 0,1,T/2,T-1"];
    for (std::int64_t b = 0; b < batch_.rows; ++b) {
      for (std::size_t i = 0; i < 4; ++i) {
        expect_logits(model.logits(tokens_, length, b * length + positions[i]),
                      want[static_cast<std::size_t>(b)][i],
                      "position " + std::to_string(positions[i]));
      }
    }
    const std::vector<std::int32_t> first(tokens_.begin(), tokens_.begin() + 4);
    expect_logits(model.logits(first, 4, 3), golden_["short4_last_logits[0:6]"], "four tokens");
  });
}

TEST_P(ZooUnits, GradientsAreThoseOfTransformers) {
  with_model([&](UnitsOfZoo& model) {
    model.loss(tokens_, targets_, batch_.length, true);
    const std::string type = read_model_type(zoo(GetParam()));
    const std::int64_t frozen = frozen_row(GetParam());
    std::size_t compared = 0;
    for (const ParameterSpec& spec : model.table().specs) {
      const std::vector<double> gradient = model.gradient(spec.number, frozen);
      const std::int64_t columns = spec.count() / spec.shape[0];
      for (const TensorPiece& piece : tensors_of(spec, model.model(), type)) {
        double square = 0;
        for (std::int64_t i = 0; i < piece.rows * columns; ++i) {
          const double each = gradient[static_cast<std::size_t>(piece.first_row * columns + i)];
          square += each * each;
        }
        const double want = golden_["grad_l2"][piece.name].get<double>();
        // A bias of keys changes no softmax: what is left is rounding.
        EXPECT_NEAR(std::sqrt(square), want, 1e-4 * want + 2e-7) << piece.name;
        ++compared;
      }
    }
    EXPECT_EQ(compared, golden_["grad_l2"].size());
  });
}

INSTANTIATE_TEST_SUITE_P(, ZooUnits, testing::ValuesIn(zoo_decoders()), zoo_name);

}  // namespace
}  // namespace zl::test
