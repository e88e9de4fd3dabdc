// A progress bar on the last line of a terminal; nothing at all where stderr is not one.
// Ownership: clears its line when it dies. Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace zl::cli {

class ProgressBar {
 public:
  // `total` units of work, at least 1.
  ProgressBar(std::string label, std::int64_t total);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Redraws; `note` stands behind the bar.
  void update(std::int64_t done, const std::string& note = "");
  // Takes the bar off the screen, for a line of text to come.
  void clear();

 private:
  std::string label_;
  std::int64_t total_;
  std::chrono::steady_clock::time_point start_;
  bool shown_, colour_;
  bool drawn_ = false;
};

}  // namespace zl::cli
