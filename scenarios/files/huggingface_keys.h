// Typed look-ups in one config.json of Hugging Face; errors name the file and the key.
// Ownership: refers to the object. Threads: const members may be called by several.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/model/model_config.h"
#include "simulator/json/reading.h"

namespace zl {

class HuggingFaceKeys {
 public:
  HuggingFaceKeys(const Json& object, std::string_view source) : object_(object), source_(source) {}

  // The value; null where the key is absent, or null itself.
  const Json* find(const char* key) const;
  // Absent keys have the default of their class in transformers; one that is null has none.
  bool is_absent(const char* key) const;
  std::string where(const char* key) const { return source_ + ": " + key; }

  // Sizes that no file leaves out: a guess would hide a misspelt key.
  std::int64_t size(const char* key) const;
  std::int64_t size(const char* key, const char* alias) const;
  std::int64_t size_or(const char* key, std::int64_t fallback) const;
  // `absent` for a key that is absent, `null` for one that is null.
  std::int64_t size_or(const char* key, std::int64_t absent, std::int64_t null) const;
  double number_or(const char* key, double fallback) const;
  bool flag_or(const char* key, bool fallback) const;
  std::string text_or(const char* key, const char* fallback) const;
  // A feature zerolab lacks: the key must be absent, null, or `harmless`.
  void require(const char* key, const Json& harmless, const char* why) const;
  [[noreturn]] void fail(const char* key, const std::string& what) const;

 private:
  const Json& object_;
  std::string source_;
};

// What the families share. rope_theta, rope_scaling, rope_parameters and partial_rotary_factor, as
// transformers 4 and 5 write them; the model has its sizes.
void read_rope(const HuggingFaceKeys& config, const std::string& type, ModelConfig& model);

// Models of Llama's kind: llama, mistral, qwen2, qwen3, gemma, phi3.
ModelConfig read_llama_kin(const HuggingFaceKeys& config, const std::string& type);

}  // namespace zl
