// The runs of a database as a table that keeps up with other writers.
// Ownership: owns its connection. Threads: GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <filesystem>
#include <optional>

#include "results/store.h"

namespace zl::gui {

class RunModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column {
    id,
    scenario,
    strategy,
    backend,
    outcome,
    model,
    cluster,
    software,
    precision,
    ranks,
    steps,
    sequence,
    micro_batch,
    accumulation,
    global_batch,
    data_source,
    loss,
    tokens_per_second,
    step_time,
    peak_device,
    wire,
    tags,
    note,
    when,
    columns
  };

  using QAbstractTableModel::QAbstractTableModel;

  // Opens the database read-only (a note opens it for writing); false, with the reason in error(),
  // when it cannot be read: a later refresh() tries again.
  bool open(const std::filesystem::path& database);
  const std::filesystem::path& path() const { return path_; }
  const QString& error() const { return error_; }
  // Reads again when another connection has written.
  void refresh();

  // Under way in any program, this one's own aside.
  const std::vector<LiveRun>& live() const { return live_; }
  const RunSummary& run(int row) const { return runs_[row]; }
  // Throws Error.
  RunResult load(std::int64_t id);
  std::string scenario_json(const std::string& hash);
  std::vector<Prediction> predictions();
  // Gone from the database for good. False, with the reason in failed(), when that is not possible.
  bool remove(const std::vector<std::int64_t>& ids);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 Q_SIGNALS:
  void failed(const QString& message);
  void runs_changed();

 private:
  void read();
  static QVariant value(const RunSummary& run, int column);

  std::filesystem::path path_;
  std::optional<Store> store_;
  std::int64_t version_ = 0;
  QString error_;
  std::vector<RunSummary> runs_;
  std::vector<LiveRun> live_;
};

}  // namespace zl::gui
