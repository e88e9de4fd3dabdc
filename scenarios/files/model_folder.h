// What a folder of Hugging Face's holds besides config.json.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

namespace zl {

inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kWeightsIndex = "model.safetensors.index.json";

// Weights pickled by PyTorch: the first such file of the folder, or empty.
std::string pickled_weights(const std::string& folder);

// Of any form, also of one that is refused when it is opened.
bool has_weights(const std::string& folder);

// Of a form that load_tokenizer takes.
bool has_tokenizer(const std::string& folder);

// Whether a name is of a file of weights alone, not of a model's folder: it ends in .safetensors,
// or something that is no folder (a link, a device) has it.
bool is_weights_file(const std::string& path);

// The path of `file` in `folder`.
std::string path_in(const std::string& folder, const std::string& file);

}  // namespace zl
