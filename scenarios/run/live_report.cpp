#include "scenarios/run/live_report.h"

#include "core/base/error.h"
#include "core/base/log.h"

namespace zl {
namespace {

constexpr auto kBetweenWrites = std::chrono::seconds(1);

}  // namespace

LiveReport::LiveReport(const std::filesystem::path& database, LiveRun run)
    : run_(std::move(run)), written_(std::chrono::steady_clock::now()) {
  try {
    store_ = Store::open(database, Store::Mode::read_write);
    run_.id = store_->begin_live(run_);
  } catch (const Error& error) {
    log_debug(std::string("not shown while it runs: ") + error.what());
    store_.reset();
  }
}

LiveReport::~LiveReport() {
  if (!store_) return;
  try {
    store_->end_live(run_.id);
  } catch (const Error& error) {
    log_debug(error.what());
  }
}

void LiveReport::step(std::int64_t step, double loss) {
  if (run_.loss.empty()) run_.first_step = step - 1;
  run_.loss.push_back(loss);
  const auto now = std::chrono::steady_clock::now();
  if (!store_ || now - written_ < kBetweenWrites) return;
  written_ = now;
  try {
    store_->update_live(run_.id, run_.first_step, run_.loss);
  } catch (const Error& error) {
    log_debug(error.what());
    store_.reset();
  }
}

}  // namespace zl
