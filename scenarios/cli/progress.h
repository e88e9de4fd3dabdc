// A progress bar on the last line of a terminal, with the time that is left; elsewhere a line from
// time to time.
// Ownership: clears its line when it dies. Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace zl::cli {

class ProgressBar {
 public:
  // `total` units of work, at least 1. may_end_early: how long it takes is not known.
  ProgressBar(std::string label, std::int64_t total, bool may_end_early = false);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // From now on `total` units of work, at least 1.
  void expect(std::int64_t total) { total_ = total; }

  // Redraws; `note` stands behind the bar. Where stderr is no terminal, a message every kInterval.
  void update(std::int64_t done, const std::string& note = "");
  // The same once kSlow has passed: what is over at a glance needs no bar.
  void update_if_slow(std::int64_t done, const std::string& note = "");
  // Takes the bar off the screen, for a line of text to come.
  void clear();

 private:
  static constexpr std::chrono::seconds kSlow{2}, kInterval{15};

  std::string left_text(std::int64_t done) const;  // ", 0:12 left"
  void say(std::int64_t done, const std::string& note);

  std::string label_;
  std::int64_t total_;
  std::chrono::steady_clock::time_point start_, said_;
  bool shown_, colour_, may_end_early_;
  bool drawn_ = false;
};

}  // namespace zl::cli
