// Real text that comes with the system: the King James Bible of Debian's bible-kjv (4.4 MB).
// Ownership: the file in the cache belongs to the user. Threads: call it from one; processes may
// race.
#pragma once

#include <string>

namespace zl {

// The path of $XDG_CACHE_HOME/zerolab/kjv.txt (~/.cache by default), made by running
// `bible -f 'gen1:1-rev22:21'` when it is missing; it appears whole or not at all. Throws
// Error{unavailable} with the line that installs `bible` where it is missing, Error{failed} when
// the cache cannot be written.
std::string king_james_bible();

}  // namespace zl
