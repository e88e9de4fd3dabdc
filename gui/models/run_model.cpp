#include "gui/models/run_model.h"

#include <QApplication>
#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "gui/models/table_model.h"
#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {
namespace {

constexpr std::array kNames{"run",       "scenario",   "strategy",    "backend",      "outcome",
                            "model",     "cluster",    "software",    "precision",    "ranks",
                            "steps",     "sequence",   "micro-batch", "accumulation", "tokens/step",
                            "data",      "final loss", "tokens/s",    "step time",    "peak device",
                            "wire/step", "tags",       "note",        "saved (UTC)"};
static_assert(kNames.size() == RunModel::columns);

Unit unit_of(int column) {
  if (column == RunModel::step_time) return Unit::seconds;
  return column == RunModel::peak_device || column == RunModel::wire ? Unit::bytes : Unit::none;
}

bool is_text(int column) {
  return (column > RunModel::id && column <= RunModel::precision) || column >= RunModel::tags ||
         column == RunModel::data_source;
}

// 0: a run of before these were stored.
QVariant known(std::int64_t count) { return count > 0 ? QVariant(qlonglong(count)) : QVariant(); }

bool same_rows(const std::vector<RunSummary>& a, const std::vector<RunSummary>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.id == y.id && x.note == y.note && x.tags == y.tags;
  });
}

}  // namespace

bool RunModel::open(const std::filesystem::path& database) {
  path_ = database;
  store_.reset();
  try {
    store_ = Store::open(path_, Store::Mode::read_only);
    read();
  } catch (const Error& failure) {
    error_ = failure.what();
    store_.reset();
    beginResetModel();
    runs_.clear();
    live_.clear();
    endResetModel();
    Q_EMIT failed(error_);
    return false;
  }
  return true;
}

void RunModel::read() {
  version_ = store_->data_version();
  std::vector<RunSummary> runs = store_->list();
  live_ = store_->live_runs();
  error_.clear();
  // A live run writes every second: what did not change keeps its selection.
  if (!same_rows(runs, runs_)) {
    beginResetModel();
    runs_ = std::move(runs);
    endResetModel();
  }
  Q_EMIT runs_changed();
}

void RunModel::refresh() {
  if (!store_) {
    // Quietly: the reason is on the page already.
    std::error_code status;
    if (std::filesystem::exists(path_, status)) open(path_);
    return;
  }
  try {
    if (store_->data_version() != version_) read();
  } catch (const Error& failure) {
    error_ = failure.what();
    Q_EMIT failed(error_);
  }
}

RunResult RunModel::load(std::int64_t run) {
  ZL_CHECK(store_.has_value(), "a row of the table has a database");
  return store_->load(run);
}

std::string RunModel::scenario_json(const std::string& hash) {
  ZL_CHECK(store_.has_value(), "a row of the table has a database");
  return store_->scenario_json(hash);
}

std::vector<Prediction> RunModel::predictions() {
  return store_ ? store_->predictions() : std::vector<Prediction>{};
}

bool RunModel::remove(const std::vector<std::int64_t>& ids) {
  try {
    Store::open(path_, Store::Mode::read_write).remove(ids);
  } catch (const Error& failure) {
    Q_EMIT failed(failure.what());
    return false;
  }
  refresh();
  return true;
}

int RunModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(runs_.size());
}

int RunModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

QVariant RunModel::value(const RunSummary& run, int column) {
  const auto number = [](double x) { return std::isfinite(x) ? QVariant(x) : QVariant(); };
  const bool began = run.outcome == Outcome::ok || run.steps > 0;
  switch (column) {
    case id:
      return qlonglong(run.id);
    case when:
      return QString::fromStdString(run.saved_at).left(19).replace('T', ' ');
    case scenario:
      return QString::fromStdString(run.scenario_name);
    case strategy:
      return QString::fromStdString(run.strategy);
    case backend:
      return QString::fromStdString(run.backend);
    case outcome:
      return QString(name_of(run.outcome));
    case model:
      return QString::fromStdString(run.model);
    case cluster:
      return QString::fromStdString(run.cluster);
    case software:
      return QString::fromStdString(run.software);
    case precision:
      return QString::fromStdString(run.precision);
    case ranks:
      return run.ranks;
    case sequence:
      return known(run.sequence_length);
    case micro_batch:
      return known(run.micro_batch);
    case accumulation:
      return known(run.gradient_accumulation);
    case global_batch:
      return known(run.tokens_per_step());
    case data_source:
      return QString::fromStdString(run.data);
    case steps:
      return qlonglong(run.steps);
    case loss:
      return number(run.final_loss);
    case tokens_per_second:
      return run.tokens_per_second > 0 ? number(run.tokens_per_second) : QVariant();
    case step_time:
      return run.step_time_median > 0 ? number(run.step_time_median) : QVariant();
    case peak_device:
      return began ? QVariant(static_cast<double>(run.peak_device_bytes)) : QVariant();
    case wire:
      return began ? QVariant(static_cast<double>(run.wire_bytes_per_step)) : QVariant();
    case tags:
      return QString::fromStdString(run.tags);
    default:
      return QString::fromStdString(run.note);
  }
}

QVariant RunModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const RunSummary& run = this->run(index.row());
  const int column = index.column();
  const QVariant raw = value(run, column);
  switch (role) {
    case Qt::DisplayRole:
      if (is_text(column) || column == id) return raw;
      return raw.isValid() ? value_text(raw.toDouble(), unit_of(column)) : QString("-");
    case Qt::EditRole:
    case kSortRole:
      return raw;
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignVCenter | (is_text(column) ? Qt::AlignLeft : Qt::AlignRight));
    case Qt::ToolTipRole:
      if (column == tags || column == note) return tr("Double click to write it");
      return {};
    case Qt::ForegroundRole:
      if (column != outcome) return {};
      return run.outcome == Outcome::ok ? good(QApplication::palette())
                                        : bad(QApplication::palette());
    default:
      return {};
  }
}

bool RunModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid() || role != Qt::EditRole) return false;
  if (index.column() != tags && index.column() != note) return false;
  RunSummary& run = runs_[index.row()];
  (index.column() == tags ? run.tags : run.note) = value.toString().toStdString();
  try {
    Store::open(path_, Store::Mode::read_write).annotate(run.id, run.note, run.tags);
  } catch (const Error& failure) {
    Q_EMIT failed(failure.what());
    return false;
  }
  Q_EMIT dataChanged(index, index);
  return true;
}

Qt::ItemFlags RunModel::flags(const QModelIndex& index) const {
  Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  const bool editable = index.column() == tags || index.column() == note;
  return editable ? flags | Qt::ItemIsEditable : flags;
}

QVariant RunModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return tr(kNames[section]);
}

}  // namespace zl::gui
