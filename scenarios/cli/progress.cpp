#include "scenarios/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/log.h"
#include "core/base/text.h"

namespace zl::cli {
namespace {

constexpr std::int64_t kWidth = 24;

bool set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] != '\0';
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

ProgressBar::ProgressBar(std::string label, std::int64_t total)
    : label_(std::move(label)),
      total_(std::max<std::int64_t>(1, total)),
      start_(std::chrono::steady_clock::now()),
      shown_(isatty(STDERR_FILENO) == 1 && log_level() != LogLevel::quiet),
      colour_(!set("NO_COLOR")) {}

void ProgressBar::update(std::int64_t done, const std::string& note) {
  if (!shown_) return;
  done = std::clamp<std::int64_t>(done, 0, total_);
  const std::int64_t full = done * kWidth / total_;
  std::string bar;
  for (std::int64_t i = 0; i < kWidth; ++i) bar += i < full ? "█" : "░";
  if (colour_) bar = "\033[36m" + bar + "\033[0m";
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::string left = "";
  if (done > 0 && done < total_) {
    left = ", " +
           clock_text(elapsed / static_cast<double>(done) * static_cast<double>(total_ - done)) +
           " left";
  }
  fmt::print(stderr, "\r\033[K{} {} {}/{}{} {}", visible(label_), bar, done, total_, left,
             visible(note));
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace zl::cli
