// Levelled messages to stderr (stdout is data), as visible() has them. Threads: one line is written
// by one call.
#pragma once

#include <string_view>

namespace zl {

enum class LogLevel { quiet, warning, info, debug };

void set_log_level(LogLevel level);
LogLevel log_level();
void log_info(std::string_view message);
void log_warning(std::string_view message);
void log_debug(std::string_view message);

}  // namespace zl
