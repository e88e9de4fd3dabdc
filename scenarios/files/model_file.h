// Models as JSON: catalogue entries, model files, and the canonical form of a ModelConfig.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "core/model/model_config.h"
#include "simulator/json/reading.h"

namespace zl {

// A completed model from an object with the keys of ModelConfig. "family" (gpt2 | llama) sets what
// the family implies; the other keys override it. Throws Error{invalid} naming the key.
ModelConfig model_from_json(const Json& object, std::string_view source);

// A catalogue name, or the path of a model file (zerolab's own or a Hugging Face config.json) or of
// a folder with a config.json.
ModelConfig load_model(const std::string& name_or_path);

// The catalogue's name of what is no file, or the name as it is where the catalogue has none.
// Throws Error{invalid} of what can only have been meant as a path: a folder, or a name with a
// slash.
std::string known_model_name(const std::string& name_or_path);

// Every key in a fixed order; model_from_json gives the same model back.
Json model_to_json(const ModelConfig& model);

}  // namespace zl
