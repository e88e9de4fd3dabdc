// Short spellings for the rows of the DeepSpeed key tables.
// Ownership: static data. Threads: compile-time only.
#pragma once

#include "scenarios/deepspeed/keys.h"

namespace zl::rows {

// Ranks along one axis of a mesh: their products with the largest batch fit 64 bits.
inline constexpr double kMeshLimit = 1e5;

using namespace json_type;

constexpr KeySpec applied(std::string_view path, unsigned types, std::string_view standard,
                          std::string_view why = "") {
  return {path, types, standard, Handling::applied, Consequence::quiet, why};
}
constexpr KeySpec fixed(std::string_view path, unsigned types, std::string_view standard,
                        Consequence consequence, std::string_view why) {
  return {path, types, standard, Handling::fixed, consequence, why};
}
constexpr KeySpec moot(std::string_view path, unsigned types, std::string_view why) {
  return {path, types, "", Handling::moot, Consequence::quiet, why};
}
constexpr KeySpec detail(std::string_view path, unsigned types = any) {
  return {path, types, "", Handling::detail};
}
constexpr KeySpec ignored(std::string_view path, std::string_view why) {
  return {path, any, "", Handling::ignored, Consequence::warn, why};
}
constexpr KeySpec rejected(std::string_view path, std::string_view why) {
  return {path, any, "", Handling::rejected, Consequence::refuse, why};
}

inline constexpr auto quiet = Consequence::quiet;
inline constexpr auto warn = Consequence::warn;
inline constexpr auto refuse = Consequence::refuse;

}  // namespace zl::rows
