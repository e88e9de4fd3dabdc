// The arguments in a script that starts Megatron-LM.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "scenarios/launch/foreign_keys.h"

namespace zl {

// Every flag with what follows it: true, a text or a list of texts. Throws Error{invalid}
// "source:line: ..." as shell_words(), and for a value of the strategy's that only the shell knows.
std::vector<ForeignKey> megatron_arguments(std::string_view text, std::string_view source);

}  // namespace zl
