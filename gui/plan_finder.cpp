#include "gui/plan_finder.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace zl::gui {

PlanFinder::PlanFinder(QObject* parent) : QObject(parent) {
  thread_ = std::thread([this] { work(); });
}

PlanFinder::~PlanFinder() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    cancelled_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void PlanFinder::start(PlanRequest request) {
  {
    const std::lock_guard lock(mutex_);
    pending_ = std::move(request);
    cancelled_ = true;
    ++ticket_;
    running_ = true;
  }
  changed_.notify_one();
}

void PlanFinder::cancel() {
  const std::lock_guard lock(mutex_);
  pending_.reset();
  cancelled_ = true;
  ++ticket_;
  running_ = false;
}

template <class Emit>
void PlanFinder::post(int ticket, Emit emit) {
  QMetaObject::invokeMethod(
      this,
      [this, ticket, emit = std::move(emit)] {
        if (ticket == ticket_) emit();
      },
      Qt::QueuedConnection);
}

void PlanFinder::work() {
  for (;;) {
    PlanRequest request;
    int ticket = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || pending_.has_value(); });
      if (ending_) return;
      request = *std::exchange(pending_, std::nullopt);
      ticket = ticket_;
      cancelled_ = false;
    }
    search(request, ticket);
  }
}

void PlanFinder::search(const PlanRequest& request, int ticket) {
  PlanHooks hooks;
  hooks.cancelled = &cancelled_;
  int shown = -1;
  hooks.progress = [&](std::int64_t done, std::int64_t of, const char* what) {
    const int percent = of > 0 ? static_cast<int>(100 * std::min(done, of) / of) : 0;
    if (percent == shown) return;
    shown = percent;
    post(ticket, [this, percent, name = QString(what)] { Q_EMIT progressed(name, percent); });
  };
  const auto send = [&](const Plans& plans, bool is_all) {
    post(ticket, [this, is_all, found = std::make_shared<const Plans>(plans)] {
      if (is_all) running_ = false;
      Q_EMIT this->found(found, is_all);
    });
  };
  hooks.found = [&](const Plans& so_far) { send(so_far, false); };
  try {
    const Plans plans = find_plans(request, hooks);
    if (!cancelled_) send(plans, true);
  } catch (const std::exception& error) {
    post(ticket, [this, message = QString(error.what())] {
      running_ = false;
      Q_EMIT failed(message);
    });
  }
}

}  // namespace zl::gui
