// Unknown options and subcommands, named with the nearest known one.
// Threads: pure functions.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace zl::cli {

// Lets `app` and everything below it collect what it does not know instead of giving up at it.
void collect_unknown(CLI::App& app);

// After parsing: throws Error{usage} for the first word that no subcommand knows, for a missing
// subcommand, and for an option or argument that is empty.
void check_unknown(const CLI::App& app);

}  // namespace zl::cli
