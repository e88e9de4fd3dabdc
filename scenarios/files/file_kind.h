// What a JSON file describes, told by its keys: people give a program the file they have.
// Ownership: values. Threads: pure functions.
#pragma once

#include "simulator/json/reading.h"

namespace zl {

enum class FileKind : std::uint8_t { scenario, model, strategy, unknown };

// `model`: a model file of zerolab's own or a Hugging Face config.json. `strategy`: an object whose
// keys are all DeepSpeed's. Of an empty object, or of anything but an object: unknown.
FileKind file_kind(const Json& file);

}  // namespace zl
