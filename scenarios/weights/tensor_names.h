// How the parameters of a model are called, and how they lie, in the files of Hugging Face.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_config.h"
#include "core/model/parameters.h"

namespace zl {

// Rows [first_row, first_row + rows) of a parameter, which are a tensor of their own in a file.
struct TensorPiece {
  std::string name;
  std::int64_t first_row = 0, rows = 0;
  bool transposed = false;  // there it is [columns, rows]: GPT-2's Conv1D
};

// The tensors that a parameter of `model` is made of, in the order of its rows. model_type is that
// of config.json. Names are those that transformers 5 writes, with the prefix of the base model.
// Source: transformers 5.23, modeling_{gpt2,llama,phi3,bert,roberta}.py and their relatives.
std::vector<TensorPiece> tensors_of(const ParameterSpec& spec, const ModelConfig& model,
                                    std::string_view model_type);

// What a model is called in files that know it by another name than its own (`model_type`): told by
// what it is made of.
std::string model_type_of(const ModelConfig& model);

// "transformer.", "model.", "bert.": what files of a bare model leave out.
std::string_view base_prefix(std::string_view model_type);

// Whether a tensor of an encoder's file belongs to a head, of which another task has no use.
bool is_head(std::string_view tensor);

// Whether a tensor of a file is none of the model's, but made anew by whoever loads it: masks and
// rotary frequencies.
bool is_buffer(std::string_view tensor);

}  // namespace zl
