// What a file of other software has no word for and a plan's strategy says all the same (its name,
// the sizes of ZeRO's buckets): a comment of the file, "# zerolab: {...}", that the software skips
// and an import reads back.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/train/strategy.h"
#include "scenarios/launch/obstacles.h"
#include "simulator/json/reading.h"

namespace zl {

// The strategy over `imported`, what reading the file without the comment gives, as a merge patch
// (RFC 7396) of its canonical JSON. Whatever else than zerolab's own keys differs is an obstacle:
// such a key would train otherwise than the plan says.
Json own_keys(const Strategy& strategy, const Strategy& imported, std::int64_t data_ranks,
              Obstacles& obstacles);

// Text of others within one line of a comment.
std::string in_comment(std::string text);

// "# zerolab: {...}\n"
std::string own_comment(const Json& patch);

// The patch of the text's comment, null without one. Throws Error{invalid} "source:line: ..." where
// it is no JSON object.
Json read_own_comment(std::string_view text, std::string_view source);

}  // namespace zl
