// What other software would hold, for people and as JSON. Ownership: values. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "results/format.h"
#include "scenarios/run/software_bytes.h"
#include "simulator/json/reading.h"

namespace zl::cli {

struct NamedBytes {
  std::string strategy;
  std::int64_t capacity = 0;  // of the device; 0: no limit
  SoftwareBytes bytes;
};

// A row for each; no rows: an empty text.
std::string software_memory_text(const std::vector<NamedBytes>& all, Format format);

Json software_bytes_json(const SoftwareBytes& bytes);

}  // namespace zl::cli
