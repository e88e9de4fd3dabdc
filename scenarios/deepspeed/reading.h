// Step one of the DeepSpeed import: the file as a flat list of known keys with checked values.
// Ownership: values refer to the JSON document they were read from. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "scenarios/deepspeed/keys.h"
#include "simulator/json/reading.h"

namespace zl {

struct GivenKey {
  std::string key;   // as written
  std::string path;  // canonical
  const KeySpec* spec = nullptr;
  const Json* value = nullptr;
  bool is_auto = false;        // "auto": a stated rule or the default decides
  std::string rejection = {};  // not empty: "what is wrong and what to write"
};

// Every leaf of `document` (an object) in file order.
std::vector<GivenKey> read_deepspeed_keys(const Json& document);

}  // namespace zl
