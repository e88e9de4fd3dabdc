#include "gui/calibrator.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/base/files.h"

namespace zl::gui {

Calibrator::~Calibrator() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void Calibrator::start(const CalibrationOptions& options, const std::string& file) {
  if (running_) return;
  if (thread_.joinable()) thread_.join();
  running_ = true;
  stop_ = false;
  thread_ = std::thread([this, options, file] { work(options, file); });
}

void Calibrator::work(CalibrationOptions options, const std::string& file) {
  options.progress = [this](const std::string& what, int done, int total) {
    if (stop_) throw Error(ErrorCode::failed, "cancelled");
    const QString text = QString::fromStdString(what);
    QMetaObject::invokeMethod(
        this, [this, text, done, total] { Q_EMIT progressed(text, done, total); },
        Qt::QueuedConnection);
  };
  QString error;
  try {
    const sim::ClusterSpec cluster = measure_(options);
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    AtomicFile out(file);
    out.write(sim::cluster_json(cluster));
    out.commit();
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  QMetaObject::invokeMethod(
      this,
      [this, error] {
        running_ = false;
        Q_EMIT finished(error);
      },
      Qt::QueuedConnection);
}

}  // namespace zl::gui
