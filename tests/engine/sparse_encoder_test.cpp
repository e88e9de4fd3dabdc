// Encoders with block-sparse attention both ways, over padded texts: loss and gradients against a
// dense encoder in float64 that masks element by element, and the books of the recording device.
#include <map>
#include <random>

#include "core/model/block_layouts.h"
#include "tests/engine/comparisons.h"

namespace zl::test {
namespace {

constexpr std::int64_t kPlaces = 96, kBlockSize = 16;  // six blocks
const std::vector<std::int32_t> kTextLengths{96, 41};  // of two texts, in no whole blocks

ModelConfig tiny() {
  ModelConfig model = tiny_bert();
  model.layers = 2;
  model.hidden = 16;
  model.heads = 2;
  model.head_size = model.kv_heads = 0;
  model.ffn = 24;
  model.vocab = 23;
  model.max_sequence = kPlaces;
  model.init_std = 0.3;  // so that attention is far from uniform
  model.complete();
  return model;
}

SparseAttentionConfig both_ways(SparseMode mode) {
  SparseAttentionConfig config{.mode = mode, .num_sliding_window_blocks = 1};
  config.num_random_blocks = mode == SparseMode::bigbird ? 1 : 0;
  config.different_layout_per_head = mode == SparseMode::bigbird;
  config.seed = 5;
  return config;
}

Batch padded_batch(const ModelConfig& model) {
  Batch batch{.lengths = kTextLengths};
  for (std::int32_t i = 0; i < 2 * kPlaces; ++i) {
    const std::int64_t place = i % kPlaces;
    batch.tokens.push_back((i * i + 5 * i) % static_cast<std::int32_t>(model.vocab));
    batch.segments.push_back(place < 20 ? 0 : 1);
    const bool counts =
        place % 7 == 3 && place < kTextLengths[static_cast<std::size_t>(i / kPlaces)];
    batch.targets.push_back(counts ? (3 * i + 1) % static_cast<std::int32_t>(model.vocab) : -1);
  }
  return batch;
}

using Matrix = std::vector<std::vector<double>>;
using Weights = std::map<std::string, std::vector<double>>;  // by name

// BERT written down once more (Devlin et al. 2019), a text at a time.
class DenseEncoder {
 public:
  DenseEncoder(const ModelConfig& model, const SparseAttentionConfig& config, const Weights& w)
      : model_(model), w_(w) {
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      layouts_.push_back(
          block_layouts(config, {.sequence = kPlaces, .heads = model.heads, .layer = layer}));
    }
  }

  double loss(const Batch& batch) const {
    double sum = 0, rows = 0;
    for (std::size_t text = 0; text < batch.lengths.size(); ++text) {
      const Matrix out = encode(batch, text);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::int32_t target = batch.targets[text * kPlaces + i];
        if (target < 0) continue;
        sum += loss_of_row(out[i], static_cast<std::size_t>(target));
        ++rows;
      }
    }
    return sum / rows;
  }

 private:
  static double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
  const std::vector<double>& at(const std::string& name) const { return w_.at(name); }

  std::vector<double> linear(const std::string& name, const std::vector<double>& x) const {
    std::vector<double> y = at(name + ".bias");
    const std::vector<double>& weight = at(name + ".weight");
    for (std::size_t o = 0; o < y.size(); ++o) {
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += weight[o * x.size() + i] * x[i];
    }
    return y;
  }
  std::vector<double> norm(const std::string& name, std::vector<double> x) const {
    double mean = 0, variance = 0;
    for (const double each : x) mean += each / static_cast<double>(x.size());
    for (const double each : x) {
      variance += (each - mean) * (each - mean) / static_cast<double>(x.size());
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = (x[i] - mean) / std::sqrt(variance + model_.norm_epsilon) * at(name + ".weight")[i] +
             at(name + ".bias")[i];
    }
    return x;
  }
  static std::vector<double> plus(std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }

  bool sees(std::size_t layer, std::size_t head, std::size_t query, std::size_t key) const {
    const auto& of_layer = layouts_[layer];
    const auto& row = of_layer[of_layer.size() == 1 ? 0 : head].rows[query / kBlockSize];
    return std::find(row.begin(), row.end(), static_cast<std::int32_t>(key / kBlockSize)) !=
           row.end();
  }

  Matrix attend(std::size_t layer, const Matrix& qkv, std::size_t length) const {
    const auto size = static_cast<std::size_t>(model_.head_size);
    const std::size_t heads = static_cast<std::size_t>(model_.heads), width = heads * size;
    Matrix out(qkv.size(), std::vector<double>(width));
    for (std::size_t head = 0; head < heads; ++head) {
      for (std::size_t i = 0; i < qkv.size(); ++i) {
        double total = 0;
        std::vector<double> sums(size);
        for (std::size_t j = 0; j < length; ++j) {
          if (!sees(layer, head, i, j)) continue;
          double score = 0;
          for (std::size_t d = 0; d < size; ++d) {
            score += qkv[i][head * size + d] * qkv[j][width + head * size + d];
          }
          const double e = std::exp(score / std::sqrt(static_cast<double>(size)));
          total += e;
          for (std::size_t d = 0; d < size; ++d) {
            sums[d] += e * qkv[j][2 * width + head * size + d];
          }
        }
        for (std::size_t d = 0; d < size && total > 0; ++d) {
          out[i][head * size + d] = sums[d] / total;
        }
      }
    }
    return out;
  }

  Matrix encode(const Batch& batch, std::size_t text) const {
    const auto hidden = static_cast<std::size_t>(model_.hidden);
    Matrix x(kPlaces, std::vector<double>(hidden));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto token = static_cast<std::size_t>(batch.tokens[text * kPlaces + i]);
      const auto segment = static_cast<std::size_t>(batch.segments[text * kPlaces + i]);
      for (std::size_t d = 0; d < hidden; ++d) {
        x[i][d] = at("embedding.token")[token * hidden + d] +
                  at("embedding.position")[i * hidden + d] +
                  at("embedding.segment")[segment * hidden + d];
      }
      x[i] = norm("embedding.norm", x[i]);
    }
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(model_.layers); ++layer) {
      const std::string block = "blocks." + std::to_string(layer) + ".";
      Matrix qkv;
      for (const auto& row : x) qkv.push_back(linear(block + "attention.qkv", row));
      const Matrix seen = attend(layer, qkv, static_cast<std::size_t>(batch.lengths[text]));
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = norm(block + "norm1", plus(x[i], linear(block + "attention.out", seen[i])));
        std::vector<double> up = linear(block + "mlp.up", x[i]);
        for (double& each : up) each = gelu(each);
        x[i] = norm(block + "norm2", plus(x[i], linear(block + "mlp.down", up)));
      }
    }
    return x;
  }

  double loss_of_row(const std::vector<double>& x, std::size_t target) const {
    std::vector<double> dense = linear("mlm.dense", x);
    for (double& each : dense) each = gelu(each);
    dense = norm("mlm.norm", dense);
    std::vector<double> logits = at("mlm.bias");
    double sum = 0;
    for (std::size_t v = 0; v < logits.size(); ++v) {
      for (std::size_t d = 0; d < dense.size(); ++d) {
        logits[v] += at("embedding.token")[v * dense.size() + d] * dense[d];
      }
      sum += std::exp(logits[v]);
    }
    return std::log(sum) - logits[target];
  }

  ModelConfig model_;
  const Weights& w_;
  std::vector<std::vector<BlockLayout>> layouts_;  // by layer, by head
};

// A step of plain descent, which moves every weight by its gradient times the rate.
struct Step {
  double loss = 0;
  Weights before, gradients;
};

Step take_step(const ModelConfig& model, const Strategy& s, const Batch& batch) {
  Step step;
  cpu::make_world({1, 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    Engine engine(context, model, s, kPlaces, 11);
    const auto values = [&engine](std::size_t p) {
      const auto all = engine.gather_parameter(static_cast<int>(p));
      return std::vector<double>(all.begin(), all.end());
    };
    const auto& specs = engine.parameters().specs;
    for (std::size_t p = 0; p < specs.size(); ++p) step.before[specs[p].name] = values(p);
    engine.load(0, batch);
    engine.forward(0);
    engine.backward();
    step.loss = engine.step().loss;
    for (std::size_t p = 0; p < specs.size(); ++p) {
      std::vector<double>& gradient = step.gradients[specs[p].name] = values(p);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] = (step.before[specs[p].name][i] - gradient[i]) / s.optimizer.lr;
      }
    }
  });
  return step;
}

Strategy plain_descent(const SparseAttentionConfig& config) {
  Strategy s = strategy(0);
  s.optimizer.kind = OptimizerKind::sgd;
  s.optimizer.momentum = s.optimizer.weight_decay = 0;
  s.optimizer.lr = 1;
  s.gradient_clipping = 0;
  s.sparse_attention = config;
  return s;
}

class SparseEncoder : public testing::TestWithParam<SparseMode> {
 protected:
  const ModelConfig model_ = tiny();
  const Batch batch_ = padded_batch(model_);
  const SparseAttentionConfig config_ = both_ways(GetParam());
};

TEST_P(SparseEncoder, LossIsThatOfADenseEncoderThatMasks) {
  const Step step = take_step(model_, plain_descent(config_), batch_);
  const DenseEncoder dense(model_, config_, step.before);
  EXPECT_NEAR(step.loss, dense.loss(batch_), 5e-6);
  const Step whole = take_step(model_, plain_descent({}), batch_);
  EXPECT_GT(std::abs(whole.loss - step.loss), 1e-3);
}

// Of every parameter: the loss changes along its gradient by the gradient's square, and along any
// other direction by what the gradient has of it.
TEST_P(SparseEncoder, GradientsAreThoseOfADenseEncoderThatMasks) {
  const Step step = take_step(model_, plain_descent(config_), batch_);
  Weights moved = step.before;
  const DenseEncoder dense(model_, config_, moved);
  std::mt19937 random(3);
  for (const auto& each : step.gradients) {
    const auto& name = each.first;
    const auto& gradient = each.second;
    const double norm =
        std::sqrt(std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0));
    ASSERT_GT(norm, 0) << name;
    for (const bool along : {true, false}) {
      std::vector<double> direction(gradient.size());
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        direction[i] = along ? gradient[i] / norm : (random() % 2 == 0 ? 1 : -1);
      }
      const auto loss_at = [&](double far) {
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          moved[name][i] = step.before.at(name)[i] + far * direction[i];
        }
        return dense.loss(batch_);
      };
      constexpr double kFar = 1e-4;
      const double slope = (loss_at(kFar) - loss_at(-kFar)) / (2 * kFar);
      loss_at(0);
      const double wanted =
          std::inner_product(gradient.begin(), gradient.end(), direction.begin(), 0.0);
      const double length = along ? 1 : std::sqrt(static_cast<double>(gradient.size()));
      EXPECT_NEAR(slope, wanted, (1e-4 * norm + 2e-6) * length)
          << name << (along ? "" : ", across");
    }
  }
}

TEST_P(SparseEncoder, NothingOfThePaddingIsSeen) {
  const Step step = take_step(model_, plain_descent(config_), batch_);
  Batch other = batch_;
  for (std::size_t i = kPlaces + 41; i < other.tokens.size(); ++i) other.tokens[i] = 7;
  EXPECT_EQ(take_step(model_, plain_descent(config_), other).loss, step.loss);
  other.tokens[kPlaces + 40] = (other.tokens[kPlaces + 40] + 1) % 23;
  EXPECT_NE(take_step(model_, plain_descent(config_), other).loss, step.loss);
}

TEST_P(SparseEncoder, BooksAreThoseOfTheRecordingDevice) {
  ModelConfig model = tiny_bert();
  model.max_sequence = kPlaces;
  for (const auto mode : {RecomputeMode::none, RecomputeMode::full}) {
    Strategy s = strategy(2, DType::bf16);
    s.sparse_attention = config_;
    s.recompute.mode = mode;
    expect_twins(run_cpu(2, model, s, steps(3)).result, run_sim(2, model, s, steps(3)).result,
                 name_of(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(, SparseEncoder,
                         testing::Values(SparseMode::bslongformer, SparseMode::bigbird),
                         [](const auto& p) { return name_of(p.param); });

}  // namespace
}  // namespace zl::test
