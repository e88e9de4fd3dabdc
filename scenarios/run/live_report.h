// Shows a run to other programs while it trains: a row of the database that grows about once a
// second and goes when the run ends.
// Ownership: owns its connection. Threads: one at a time; steps may come from another thread than
// the constructor's.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "results/store.h"

namespace zl {

class LiveReport {
 public:
  // A database that cannot be written is no reason to stop a run: nothing is reported then.
  LiveReport(const std::filesystem::path& database, LiveRun run);
  ~LiveReport();
  LiveReport(const LiveReport&) = delete;
  LiveReport& operator=(const LiveReport&) = delete;

  // Step `step`, counted from 1 over the whole training, had this loss.
  void step(std::int64_t step, double loss);

 private:
  std::optional<Store> store_;
  LiveRun run_;
  std::chrono::steady_clock::time_point written_;
};

}  // namespace zl
