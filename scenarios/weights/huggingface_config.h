// config.json of a model, as transformers reads it.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/model/model_config.h"
#include "simulator/json/reading.h"

namespace zl {

// All keys of the family, spelled out since defaults change between releases, in the forms of
// transformers 4 and 5. labels: the names of those that the model tells, by number; see
// set_label_names.
Json huggingface_config(const ModelConfig& model, std::string_view model_type, DType dtype,
                        const std::vector<std::string>& labels = {});

// The config.json of `folder`, with every key that it has, but for the type of the weights and, of
// an encoder, for the head: `model` may have another, or other labels.
Json source_config(const std::string& folder, const ModelConfig& model, DType dtype,
                   const std::vector<std::string>& labels = {});

}  // namespace zl
