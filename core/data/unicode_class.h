// The Unicode classes that GPT-2's pre-tokenisation tells apart.
// Ownership: none. Threads: pure functions.
#pragma once

#include <cstdint>

namespace zl {

enum class CharClass : std::uint8_t { letter, number, space, other };

// letter: general categories L*, number: N* (Unicode 14.0, the whole range); space: the property
// White_Space; everything else, unassigned and invalid code points included: other.
CharClass classify(char32_t code_point);

}  // namespace zl
