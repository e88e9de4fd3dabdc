// What the acceptance run says about the machine: device, driver, runtime and library versions, and
// the card's memory as the driver counts it.
// Ownership: values. Threads: any.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace zl::gpu {

// {"device": {...}, "driver": .., "cuda": {...}, "libraries": {...}, "host": {...}, ...}. Needs a
// GPU.
nlohmann::ordered_json machine_facts();

// Bytes in use on GPU 0 by every process, contexts included, from the driver's management library;
// nothing when that library cannot be loaded.
std::optional<std::int64_t> driver_used_bytes();

// Free memory of GPU 0, in bytes. Throws Error{failed} where CUDA does not tell.
std::int64_t free_bytes();

}  // namespace zl::gpu
