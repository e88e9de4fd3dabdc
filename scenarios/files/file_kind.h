// What a JSON file describes, told by its keys: people give a program the file they have.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "simulator/json/reading.h"

namespace zl {

enum class FileKind : std::uint8_t { scenario, model, strategy, unknown };

// `model`: a model file of zerolab's own or a Hugging Face config.json. `strategy`: an object whose
// keys are all DeepSpeed's. Of an empty object, or of anything but an object: unknown.
FileKind file_kind(const Json& file);

// What bytes that are no text are, for people: "a safetensors file", "a zip archive, as PyTorch's
// checkpoints are", "binary data"; empty: they may be text.
std::string binary_kind(std::string_view bytes);

// Throws Error{invalid} for the beginning of a checkpoint of PyTorch's own (pytorch_model.bin,
// .pt): a pickle, and reading one runs the code in it. The message has what to do instead.
void require_no_pickle(std::string_view begin, const std::string& path);

// Throws Error{invalid} for a text that is no strategy but a model or a scenario, or no text at
// all, with the option that takes it. Says nothing of malformed JSON.
void require_strategy(std::string_view text, const std::string& path);

// The config.json of a folder, as Hugging Face's are; any other path as it is.
std::string model_path(const std::string& path);

}  // namespace zl
