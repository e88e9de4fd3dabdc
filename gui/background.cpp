#include "gui/background.h"

#include <exception>
#include <utility>

namespace zl::gui {

Background::Background(QObject* parent) : QObject(parent) {
  thread_ = std::thread([this] { run(); });
}

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    cancelled_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Background::start(Work work) {
  {
    const std::lock_guard lock(mutex_);
    pending_ = std::move(work);
    cancelled_ = true;
    ++ticket_;
    running_ = true;
  }
  changed_.notify_one();
}

void Background::cancel() {
  const std::lock_guard lock(mutex_);
  pending_ = nullptr;
  cancelled_ = true;
  ++ticket_;
  running_ = false;
}

void Background::post(int ticket, bool is_last, Deliver deliver) {
  QMetaObject::invokeMethod(
      this,
      [this, ticket, is_last, deliver = std::move(deliver)] {
        if (ticket != ticket_) return;
        if (is_last) running_ = false;
        deliver();
      },
      Qt::QueuedConnection);
}

void Background::run() {
  for (;;) {
    Work work;
    int ticket = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || pending_ != nullptr; });
      if (ending_) return;
      work = std::exchange(pending_, nullptr);
      ticket = ticket_;
      cancelled_ = false;
    }
    const auto on_the_way = [this, ticket](Deliver deliver) {
      post(ticket, false, std::move(deliver));
    };
    try {
      Deliver deliver = work({cancelled_, on_the_way});
      if (!cancelled_) post(ticket, true, std::move(deliver));
    } catch (const std::exception& error) {
      post(ticket, true, [this, message = QString(error.what())] { Q_EMIT failed(message); });
    }
  }
}

}  // namespace zl::gui
