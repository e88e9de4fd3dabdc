// One piece of work after the other in a thread of its own, for answers that take longer than a
// frame: a new piece cancels the one under way.
// Ownership: owns the thread; the destructor cancels and waits for it. Threads: GUI thread; what
// the work hands back is called there.
#pragma once

#include <QObject>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace zl::gui {

class Background : public QObject {
  Q_OBJECT

 public:
  explicit Background(QObject* parent = nullptr);
  ~Background() override;

  using Deliver = std::function<void()>;
  // What the work has of the GUI thread meanwhile: whether it is wanted no more, and what that
  // thread is to call on the way.
  struct Link {
    const std::atomic<bool>& cancelled;
    std::function<void(Deliver)> deliver;
  };
  // Runs in the thread and hands back what the GUI thread is to call at the end. May throw:
  // failed() says it.
  using Work = std::function<Deliver(const Link&)>;
  // Drops what is under way: its answer counts no more.
  void start(Work work);
  void cancel();
  bool running() const { return running_; }

 Q_SIGNALS:
  void failed(const QString& message);

 private:
  void run();
  void post(int ticket, bool is_last, Deliver deliver);

  std::mutex mutex_;
  std::condition_variable changed_;
  Work pending_;
  bool ending_ = false;
  int ticket_ = 0;  // of the work whose answer counts
  bool running_ = false;
  std::atomic<bool> cancelled_{false};
  std::thread thread_;
};

}  // namespace zl::gui
