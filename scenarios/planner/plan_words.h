// What is asked of plans beside the search, from words as people write them.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "scenarios/planner/robustness.h"

namespace zl {

// All throw Error{usage} that begins with the part of the text that is wrong.

// "15T", "300B", "2.5e9".
double parse_tokens(const std::string& text);
// "2.5/gpu-hour", its number.
double parse_price(const std::string& text);
// "mtbf=50000h" or "mtbf=50000h,restart=5m" (s, m, h, d), into the question.
void parse_failures(const std::string& text, RobustnessQuestion& question);
// "1%:1.2x": of a hundred devices one takes 1.2 times as long.
void parse_stragglers(const std::string& text, RobustnessQuestion& question);

}  // namespace zl
