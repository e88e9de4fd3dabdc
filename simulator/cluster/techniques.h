// What a strategy uses that published runs of a software may not have shown.
// Ownership: values. Threads: pure functions.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zl {
class JsonObject;
struct Strategy;
}  // namespace zl

namespace zl::sim {

enum class Technique : std::uint8_t {
  zero_0,
  zero_1,
  zero_2,
  zero_3,
  copies,       // of shards: HSDP, MiCS, hpZ
  tensor,       // groups
  pipeline,     // of several ranks
  offload,      // to the host
  files,        // offload to them
  compression,  // of what is exchanged: 1-bit optimizers, ZeRO++
  sparse        // attention
};
inline constexpr std::size_t kTechniques = static_cast<std::size_t>(Technique::sparse) + 1;
using Techniques = std::bitset<kTechniques>;
// What each of some runs used together, but for what is part of another's; in one order.
using TechniqueSets = std::vector<Techniques>;

// As read_technique_sets reads them.
std::vector<std::string> names_of(Techniques used);
Techniques techniques_of(const Strategy& strategy);

void add_to(TechniqueSets& sets, Techniques used);
// Did one of the runs use all of it?
bool covers(const TechniqueSets& sets, Techniques used);

// A list of lists of their names. Throws Error{invalid} naming the key and what is none.
TechniqueSets read_technique_sets(JsonObject& object, const char* key);

}  // namespace zl::sim
