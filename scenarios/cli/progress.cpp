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

ProgressBar::ProgressBar(std::string label, std::int64_t total, bool may_end_early)
    : label_(std::move(label)),
      total_(std::max<std::int64_t>(1, total)),
      start_(std::chrono::steady_clock::now()),
      said_(start_),
      shown_(isatty(STDERR_FILENO) == 1 && log_level() != LogLevel::quiet),
      colour_(!set("NO_COLOR")),
      may_end_early_(may_end_early) {}

std::string ProgressBar::left_text(std::int64_t done) const {
  if (may_end_early_ || done <= 0 || done >= total_) return "";
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  return ", " +
         clock_text(elapsed / static_cast<double>(done) * static_cast<double>(total_ - done)) +
         " left";
}

void ProgressBar::say(std::int64_t done, const std::string& note) {
  const auto now = std::chrono::steady_clock::now();
  if (done >= total_ || now - said_ < kInterval) return;
  said_ = now;
  log_info(fmt::format("{}: {} of {}{}{}", label_, done, total_, left_text(done),
                       note.empty() ? "" : ", " + note));
}

void ProgressBar::update_if_slow(std::int64_t done, const std::string& note) {
  if (std::chrono::steady_clock::now() - start_ >= kSlow) update(done, note);
}

void ProgressBar::update(std::int64_t done, const std::string& note) {
  done = std::clamp<std::int64_t>(done, 0, total_);
  if (!shown_) return say(done, note);
  const std::int64_t full = done * kWidth / total_;
  std::string bar;
  for (std::int64_t i = 0; i < kWidth; ++i) bar += i < full ? "█" : "░";
  if (colour_) bar = "\033[36m" + bar + "\033[0m";
  fmt::print(stderr, "\r\033[K{} {} {}/{}{} {}", visible(label_), bar, done, total_,
             left_text(done), visible(note));
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
