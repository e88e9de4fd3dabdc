#include "core/base/log.h"

#include <atomic>
#include <cstdio>
#include <string>

#include "core/base/text.h"

namespace zl {
namespace {

std::atomic<LogLevel> g_level{LogLevel::info};

void write_line(LogLevel level, std::string_view prefix, std::string_view message) {
  if (level > g_level.load(std::memory_order_relaxed)) return;
  std::string line(prefix);
  line.append(visible(message)).append("\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void set_log_level(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }
LogLevel log_level() { return g_level.load(std::memory_order_relaxed); }
void log_info(std::string_view message) { write_line(LogLevel::info, "", message); }
void log_warning(std::string_view message) { write_line(LogLevel::warning, "warning: ", message); }
void log_debug(std::string_view message) { write_line(LogLevel::debug, "debug: ", message); }

}  // namespace zl
