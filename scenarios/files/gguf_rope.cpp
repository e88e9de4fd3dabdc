// Rotary embeddings in GGUF files: a base, and one of several scalings.
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

#include <nlohmann/json.hpp>
#include "core/base/error.h"
#include "scenarios/files/gguf_config.h"

namespace zl {
namespace {

constexpr double kUsualBase = 10'000;

std::vector<float> read_factors(const GgufFile& file, const std::string& name, std::int64_t count) {
  const GgufTensor* tensor = file.find(name);
  if (tensor == nullptr) file.refuse("no tensor \"" + name + "\", which its scaling needs");
  if (tensor->elements != count) {
    file.refuse("tensor \"" + name + "\" has " + std::to_string(tensor->elements) +
                " elements, not the " + std::to_string(count) + " of half a head");
  }
  std::vector<float> values(static_cast<std::size_t>(count));
  file.read(*tensor, 0, values);
  return values;
}

struct Llama3Scaling {
  double factor, low, high, original;

  // How many times slower a frequency turns.
  double divisor(double frequency) const {
    const double wave = 2 * std::numbers::pi / frequency;
    if (wave < original / high) return 1;
    if (wave > original / low) return factor;
    const double share = (original / wave - low) / (high - low);
    return 1 / ((1 - share) / factor + share);
  }
};

// The largest relative difference to what the file has.
double error_of(const Llama3Scaling& scaling, double base, const std::vector<float>& divisors) {
  double worst = 0;
  const auto half = static_cast<double>(divisors.size());
  for (std::size_t j = 0; j < divisors.size(); ++j) {
    const double wanted = scaling.divisor(std::pow(base, -static_cast<double>(j) / half));
    worst = std::max(worst, std::abs(wanted - divisors[j]) / wanted);
  }
  return worst;
}

// Meta's models have low 1 and high 4; the length is a power of two.
Json llama3_rope(const GgufFile& file, double base, const std::vector<float>& divisors) {
  constexpr double kTolerance = 1e-4;
  double factor = 1;
  for (const float divisor : divisors) factor = std::max(factor, static_cast<double>(divisor));
  if (!std::isfinite(factor)) file.refuse("tensor \"rope_freqs.weight\" has no finite numbers");
  Llama3Scaling best{shortest_decimal(factor), 1, 4, 0};
  double least = kTolerance;
  for (double length = 16; length <= 1 << 22; length *= 2) {
    Llama3Scaling scaling = best;
    scaling.original = length;
    const double error = error_of(scaling, base, divisors);
    if (error >= least) continue;
    least = error;
    best = scaling;
  }
  if (best.original == 0) {
    file.refuse(
        "rope_freqs.weight is not the scaling of a Llama 3.1 or later; import the model from its "
        "Hugging Face folder");
  }
  return {{"rope_type", "llama3"},
          {"factor", best.factor},
          {"low_freq_factor", best.low},
          {"high_freq_factor", best.high},
          {"original_max_position_embeddings", static_cast<std::int64_t>(best.original)}};
}

Json longrope(const GgufFile& file, const std::string& prefix, std::int64_t half) {
  const auto numbers = [&](const char* name) {
    Json list = Json::array();
    for (const float value : read_factors(file, name, half))
      list.push_back(shortest_decimal(value));
    return list;
  };
  Json rope = {{"rope_type", "longrope"},
               {"short_factor", numbers("rope_factors_short.weight")},
               {"long_factor", numbers("rope_factors_long.weight")},
               {"original_max_position_embeddings",
                gguf_count(file, prefix + "scaling.original_context_length")}};
  if (const auto factor = file.number(prefix + "scaling.attn_factor")) {
    rope["attention_factor"] = shortest_decimal(*factor);
  }
  return rope;
}

Json named_rope(const GgufFile& file, const std::string& prefix, const std::string& type) {
  if (type.empty() || type == "none") return {{"rope_type", "default"}};
  if (type != "linear" && type != "yarn") {
    file.refuse(prefix + "scaling.type is \"" + type +
                "\"; none, linear, yarn and longrope are read");
  }
  const auto factor = file.number(prefix + "scaling.factor");
  if (!factor) file.refuse("no " + prefix + "scaling.factor, which its scaling needs");
  Json rope = {{"rope_type", type}, {"factor", shortest_decimal(*factor)}};
  if (type == "yarn") {
    rope["original_max_position_embeddings"] =
        gguf_count(file, prefix + "scaling.original_context_length");
  }
  return rope;
}

}  // namespace

double shortest_decimal(double value) {
  std::array<char, 64> text{};
  const auto written = std::to_chars(text.begin(), text.end(), static_cast<float>(value));
  double decimal = value;
  std::from_chars(text.begin(), written.ptr, decimal);
  return decimal;
}

Json gguf_rope(const GgufFile& file, const std::string& architecture, std::int64_t head) {
  const std::string prefix = architecture + ".rope.";
  const double base = file.number(prefix + "freq_base").value_or(kUsualBase);
  const std::int64_t turned = file.integer(prefix + "dimension_count").value_or(head);
  if (turned < 2 || turned > head || turned % 2 != 0) {
    file.refuse(prefix + "dimension_count is " + std::to_string(turned) + " of heads of " +
                std::to_string(head) + "; an even number up to that is needed");
  }
  const std::string type = file.text(prefix + "scaling.type").value_or("");
  Json rope;
  if (file.find("rope_freqs.weight") != nullptr) {
    rope = llama3_rope(file, base, read_factors(file, "rope_freqs.weight", turned / 2));
  } else if (type == "longrope" || file.find("rope_factors_long.weight") != nullptr) {
    rope = longrope(file, prefix, turned / 2);
  } else {
    rope = named_rope(file, prefix, type);
  }
  rope["rope_theta"] = shortest_decimal(base);
  if (turned != head) {
    rope["partial_rotary_factor"] = static_cast<double>(turned) / static_cast<double>(head);
  }
  return rope;
}

}  // namespace zl
