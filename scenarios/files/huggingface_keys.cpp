#include "scenarios/files/huggingface_keys.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace zl {

const Json* HuggingFaceKeys::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool HuggingFaceKeys::is_absent(const char* key) const { return !object_.contains(key); }

std::int64_t HuggingFaceKeys::size(const char* key) const {
  if (!find(key)) fail(key, "is missing; give the number");
  return integer_at(*find(key), where(key));
}

std::int64_t HuggingFaceKeys::size(const char* key, const char* alias) const {
  return size(find(key) == nullptr && find(alias) != nullptr ? alias : key);
}

std::int64_t HuggingFaceKeys::size_or(const char* key, std::int64_t fallback) const {
  return size_or(key, fallback, fallback);
}

std::int64_t HuggingFaceKeys::size_or(const char* key, std::int64_t absent,
                                      std::int64_t null) const {
  if (is_absent(key)) return absent;
  return find(key) ? integer_at(*find(key), where(key)) : null;
}

double HuggingFaceKeys::number_or(const char* key, double fallback) const {
  return find(key) ? number_at(*find(key), where(key)) : fallback;
}

bool HuggingFaceKeys::flag_or(const char* key, bool fallback) const {
  return find(key) ? boolean_at(*find(key), where(key)) : fallback;
}

std::string HuggingFaceKeys::text_or(const char* key, const char* fallback) const {
  return find(key) ? text_at(*find(key), where(key)) : fallback;
}

void HuggingFaceKeys::require(const char* key, const Json& harmless, const char* why) const {
  if (find(key) && *find(key) != harmless) {
    fail(key, shown(*find(key)) + " is not supported: " + why);
  }
}

void HuggingFaceKeys::fail(const char* key, const std::string& what) const {
  throw Error(ErrorCode::invalid, where(key) + ": " + what);
}

}  // namespace zl
