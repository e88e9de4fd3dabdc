// vocab.txt, BERT's list of tokens by line, as the tokenizer.json that it stands for.
// Ownership: values. Threads: pure functions.
#pragma once

#include <optional>
#include <string>

#include "core/data/text/json_view.h"

namespace zl {

// Ids are line numbers from 0. Lower case unless `names` (a tokenizer_config.json) says
// do_lower_case: false. [UNK], [CLS] and [SEP] must be there; those, [PAD] and [MASK] are special.
// Throws Error{invalid} naming the file and the line.
JsonView word_list_spec(const std::string& path, const std::optional<JsonView>& names);

}  // namespace zl
