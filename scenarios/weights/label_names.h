// The names of a model's labels, as transformers keeps them in config.json: id2label and label2id.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/json/reading.h"

namespace zl {

// By number, those that config.json of `folder` has for a model of `labels` labels; empty where it
// names none, another number of them, or only those that transformers gives by itself, LABEL_0 and
// so on. Throws Error{invalid} naming the file and the key where names are no texts, a number has
// none, or two have the same.
std::vector<std::string> label_names(const std::string& folder, std::int64_t labels);

// Names `labels` labels in a config.json: `names`, and LABEL_i for those behind them; without any,
// what the file says stays where it names as many.
void set_label_names(std::int64_t labels, const std::vector<std::string>& names, Json& config);

}  // namespace zl
