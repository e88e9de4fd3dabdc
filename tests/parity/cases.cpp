#include "tests/parity/cases.h"

#include <array>
#include <bit>
#include <cstdio>
#include <map>

#include "core/checkpoint/safetensors.h"

namespace zl::parity {
namespace {

// Something to learn: 50 steps bring the loss well below ln(256).
constexpr std::string_view kText =
    "A rank owns one part of the weights, and the others own the rest. Before a layer runs, every "
    "rank gathers the parts it lacks; after the layer has run, it drops them again. On the way "
    "back the gradients are summed over the ranks and cut into the same parts, so that a rank "
    "keeps only the gradients of the weights it owns. Then each rank updates its own part with its "
    "own share of the optimizer's state. The more ranks there are, the smaller each part becomes, "
    "and the more bytes must cross the wire for every layer. Whether that is a good bargain "
    "depends on the memory of the device, on the speed of the links between the devices, and on "
    "how much of the talking can hide behind the computing. Training a model is a long walk down "
    "a hill in the fog: every step is short, and every rank must take the same one. ";

ModelConfig gpt2() {
  ModelConfig model;
  model.name = "gpt2";
  model.layers = 2;
  model.hidden = 64;
  model.heads = 4;
  model.vocab = 256;
  model.max_sequence = kSequence;
  return model;
}

ModelConfig llama() {
  ModelConfig model = gpt2();
  model.name = model.family = "llama";
  model.kv_heads = 2;
  model.ffn = 176;
  model.norm = NormKind::rms_norm;
  model.activation = ActivationKind::swiglu;
  model.position = PositionKind::rope;
  model.tied_embeddings = model.qkv_bias = model.linear_bias = false;
  return model;
}

ModelConfig qwen2() {
  ModelConfig model = llama();
  model.name = "qwen2";
  model.qkv_bias = model.tied_embeddings = true;
  model.rope_theta = 1e6;
  model.norm_epsilon = 1e-6;
  return model;
}

std::map<std::string, std::string> metadata_of(const ModelConfig& model) {
  const auto number = [](double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.17g", value);
    return std::string(text.data());
  };
  return {{"family", model.name},
          {"layers", std::to_string(model.layers)},
          {"hidden", std::to_string(model.hidden)},
          {"heads", std::to_string(model.heads)},
          {"kv_heads", std::to_string(model.kv_heads)},
          {"head_size", std::to_string(model.head_size)},
          {"ffn", std::to_string(model.ffn)},
          {"vocab", std::to_string(model.vocab)},
          {"max_sequence", std::to_string(model.max_sequence)},
          {"norm_epsilon", number(model.norm_epsilon)},
          {"rope_theta", number(model.rope_theta)}};
}

constexpr std::array<std::uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void sha256_block(const unsigned char* block, std::array<std::uint32_t, 8>& state) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t byte = 0; byte < 4; ++byte) w[i] = w[i] << 8 | block[4 * i + byte];
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1;
    d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += mixed[i];
}

}  // namespace

std::vector<ModelConfig> models() {
  std::vector<ModelConfig> all = {gpt2(), llama(), qwen2()};
  for (ModelConfig& model : all) model.complete();
  return all;
}

Strategy recipe(int ranks, int stage, DType compute_dtype) {
  Strategy strategy;
  strategy.zero_stage = stage;
  strategy.compute_dtype = compute_dtype;
  strategy.micro_batch = kBatch / ranks;
  strategy.gradient_clipping = 1.0;
  strategy.optimizer.beta2 = 0.95;
  strategy.optimizer.weight_decay = 0.1;
  strategy.schedule.kind = ScheduleKind::warmup_lr;
  strategy.schedule.warmup_max_lr = 3e-3;
  strategy.schedule.warmup_num_steps = 10;
  strategy.schedule.warmup_log = false;
  // Small enough that these models are cut, gathered and dropped for real.
  strategy.reduce_bucket_size = 20'000;
  strategy.prefetch_bucket_size = 20'000;
  strategy.param_persistence_threshold = 100;
  strategy.max_reuse_distance = 0;
  return strategy;
}

std::vector<std::int32_t> tokens_of_step(std::int64_t step) {
  constexpr std::int64_t kStride = 29;  // prime to the text's length
  std::vector<std::int32_t> tokens;
  for (std::int64_t row = 0; row < kBatch; ++row) {
    const std::int64_t start = (step * kBatch + row) * kStride;
    for (std::int64_t i = 0; i <= kSequence; ++i) {
      const auto at = static_cast<std::size_t>(start + i) % kText.size();
      tokens.push_back(static_cast<unsigned char>(kText[at]));
    }
  }
  return tokens;
}

void write_initial(Engine& engine, const ModelConfig& model, const std::string& path) {
  const std::vector<ParameterSpec>& specs = engine.parameters().specs;
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> tensors;
  for (std::size_t p = 0; p < specs.size(); ++p) {
    values.push_back(engine.gather_parameter(static_cast<int>(p)));
    NamedTensor tensor{specs[p].name, DType::f32, {}, std::as_bytes(std::span(values.back()))};
    for (int axis = 0; axis < specs[p].shape.rank; ++axis) {
      tensor.shape.push_back(specs[p].shape.size[static_cast<std::size_t>(axis)]);
    }
    tensors.push_back(std::move(tensor));
  }
  if (path.empty()) return;
  std::vector<std::int32_t> tokens;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const std::vector<std::int32_t> batch = tokens_of_step(step);
    tokens.insert(tokens.end(), batch.begin(), batch.end());
  }
  tensors.push_back(
      {"tokens", DType::i32, {kSteps, kBatch, kSequence + 1}, std::as_bytes(std::span(tokens))});
  write_safetensors(path, tensors, metadata_of(model));
}

std::string sha256(const std::string& bytes) {
  std::string padded = bytes + '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) {
    padded += static_cast<char>(std::uint64_t{bytes.size()} * 8 >> shift);
  }
  std::array<std::uint32_t, 8> state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (std::size_t i = 0; i < padded.size(); i += 64) {
    sha256_block(reinterpret_cast<const unsigned char*>(padded.data()) + i, state);
  }
  std::string text;
  for (const std::uint32_t word : state) {
    std::array<char, 9> digits{};
    std::snprintf(digits.data(), digits.size(), "%08x", word);
    text += digits.data();
  }
  return text;
}

}  // namespace zl::parity
