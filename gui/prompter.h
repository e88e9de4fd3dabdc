// Lets a model go on with a prompt in a thread of its own, as `zerolab generate` does.
// Ownership: owns the thread; the destructor cancels and waits for the token under way. Threads:
// GUI thread; signals arrive there.
#pragma once

#include <QObject>
#include <QString>
#include <atomic>
#include <thread>

namespace zl::gui {

struct PromptRequest {
  QString model;  // folder, as transformers has them
  QString prompt;
  int max_tokens = 64;
  double temperature = 0;  // 0: the most likely token
};

class Prompter : public QObject {
  Q_OBJECT

 public:
  explicit Prompter(QObject* parent = nullptr) : QObject(parent) {}
  ~Prompter() override;

  bool running() const { return running_; }
  // Nothing while one runs.
  void start(const PromptRequest& request);
  void cancel() { stop_ = true; }

 Q_SIGNALS:
  void said(const QString& text);  // what comes next, whole characters
  // error: "" where it went on to its end; summary: how fast.
  void finished(const QString& error, const QString& summary);

 private:
  void work(const PromptRequest& request);
  QString generate(const PromptRequest& request);

  std::thread thread_;
  std::atomic<bool> stop_{false};
  bool running_ = false;
};

}  // namespace zl::gui
