// What strategies that are files are called where several have one base name, and lists of them.
// Ownership: values. Threads: pure functions but for what they ask of the file system.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace zl {

// "x (d1)" and "x (d2)" of d1/x.json and d2/x.json: as many folders as tell the paths apart.
// Empty when nothing does: one file stands there twice.
std::vector<std::string> names_by_path(std::span<const std::string> paths);

// A scenario's "strategies" (names, paths or texts of objects) with the file `path` among them: at
// the end, or where it is already, to be read again.
std::vector<std::string> with_strategy_file(std::vector<std::string> strategies,
                                            const std::string& path);

}  // namespace zl
