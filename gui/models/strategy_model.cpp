#include "gui/models/strategy_model.h"

#include <QApplication>
#include <QFont>
#include <cmath>

#include "gui/models/strategy_text.h"
#include "gui/models/table_model.h"
#include "gui/theme.h"
#include "gui/units.h"

namespace zl::gui {
namespace {

struct Metric {
  const char* name;
  Unit unit;
  bool delta;           // gets a column beside a baseline
  bool more_is_better;  // for the colour of the delta
  const char* explained;
  double (*value)(const Study&, const StrategyStudy&);  // NaN: none
};

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double share_of_step(const StrategyStudy& strategy, double TimeBreakdown::*part) {
  const double step = strategy.result.step_time.median;
  return step > 0 ? strategy.result.time.*part / step : kNone;
}

double positive(double value) { return value > 0 ? value : kNone; }

// Every number but the name and the verdict.
constexpr Metric kMetrics[] = {
    {"headroom", Unit::bytes, false, true,
     "Device memory of one rank beside what must fit; of what does not fit, what is missing",
     [](const Study& study, const StrategyStudy& s) {
       if (study.budget <= 0) return kNone;
       return static_cast<double>(study.budget - s.reserved());
     }},
    {"peak device", Unit::bytes, true, false,
     "Highest device memory of one rank in use: by the software itself, where that is known",
     [](const Study&, const StrategyStudy& s) {
       return static_cast<double>(bytes_at_peak(s.result));
     }},
    {"reserved", Unit::bytes, false, false,
     "What must fit: what the software would hold of a device, where that is known; else what the "
     "pool of one rank reserves, in whole slabs",
     [](const Study&, const StrategyStudy& s) { return static_cast<double>(s.reserved()); }},
    {"host", Unit::bytes, false, false, "Highest host memory of one rank",
     [](const Study&, const StrategyStudy& s) {
       return static_cast<double>(s.result.peak_host.total());
     }},
    {"NVMe", Unit::bytes, false, false, "Bytes of one rank on the file tier",
     [](const Study&, const StrategyStudy& s) {
       return static_cast<double>(s.result.peak_nvme.total());
     }},
    {"step time", Unit::seconds, true, false, "Median of the steps after the first, which warms up",
     [](const Study&, const StrategyStudy& s) { return positive(s.result.step_time.median); }},
    {"tokens/s", Unit::none, true, true, "Of all ranks together",
     [](const Study&, const StrategyStudy& s) { return positive(s.result.tokens_per_second); }},
    {"TFLOP/s/GPU", Unit::none, false, true, "Model FLOPs (6N + 12Lhs a token) per second and rank",
     [](const Study&, const StrategyStudy& s) {
       const double seconds = s.result.step_time.median * std::max(1, s.result.ranks);
       return seconds > 0 ? std::round(s.result.model_flops_per_step / seconds / 1e10) / 100
                          : kNone;
     }},
    {"MFU", Unit::fraction, false, true, "Share of the peak FLOP/s, recomputation not counted",
     [](const Study&, const StrategyStudy& s) { return positive(s.result.mfu); }},
    {"wire/step", Unit::bytes, true, false,
     "What one rank sends in one step: average of those after the first",
     [](const Study&, const StrategyStudy& s) {
       return static_cast<double>(s.result.wire_bytes_per_step);
     }},
    {"exposed comm", Unit::fraction, false, false, "Share of the step that waits for collectives",
     [](const Study&, const StrategyStudy& s) {
       return share_of_step(s, &TimeBreakdown::exposed_communication);
     }},
    {"bubble", Unit::fraction, false, false, "Share of the step that waits for the pipeline",
     [](const Study&, const StrategyStudy& s) { return share_of_step(s, &TimeBreakdown::bubble); }},
    {"stall", Unit::fraction, false, false, "Share of the step that waits for offloaded state",
     [](const Study&, const StrategyStudy& s) {
       return share_of_step(s, &TimeBreakdown::offload_stall);
     }},
};
constexpr std::size_t kName = 0, kFits = 1;

Cell number(double value) { return std::isnan(value) ? Cell() : Cell(value); }

std::string delta_name(const Metric& metric) { return std::string("Δ ") + metric.name; }

}  // namespace

StrategyModel::StrategyModel(Session& session, QObject* parent)
    : QAbstractTableModel(parent), session_(session) {
  connect(&session, &Session::study_changed, this, &StrategyModel::refill);
  connect(&session, &Session::baseline_changed, this, &StrategyModel::refill);
  connect(&session, &Session::filter_changed, this, [this] {
    if (rowCount() > 0) {
      Q_EMIT dataChanged(index(0, kName), index(rowCount() - 1, kName), {Qt::CheckStateRole});
    }
  });
  refill();
}

void StrategyModel::refill() {
  beginResetModel();
  table_ = {};
  const auto study = session_.study();
  const StrategyStudy* baseline = study ? study->find(session_.baseline().toStdString()) : nullptr;
  table_.columns = {{"strategy", Align::left}, {"fits", Align::left}};
  for (const Metric& metric : kMetrics) {
    table_.columns.push_back({metric.name, Align::right, metric.unit});
    if (baseline && metric.delta) {
      table_.columns.push_back({delta_name(metric), Align::right, Unit::fraction});
    }
  }
  const std::vector<StrategyStudy> none;
  for (const StrategyStudy& each : study ? study->strategies : none) {
    std::vector<Cell> row{each.name(), fits_text(fits(each.result))};
    for (const Metric& metric : kMetrics) {
      const double value = metric.value(*study, each);
      row.push_back(number(value));
      if (!baseline || !metric.delta) continue;
      const double base = metric.value(*study, *baseline);
      row.push_back(base != 0 && &each != baseline ? number(value / base - 1) : Cell());
    }
    table_.rows.push_back(std::move(row));
  }
  endResetModel();
}

QString StrategyModel::strategy(int row) const {
  return QString::fromStdString(std::get<std::string>(table_.rows[row][kName]));
}

int StrategyModel::row_of(const QString& name) const {
  for (int row = 0; row < rowCount(); ++row) {
    if (strategy(row) == name) return row;
  }
  return -1;
}

int StrategyModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(table_.rows.size());
}

int StrategyModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(table_.columns.size());
}

QVariant StrategyModel::color(std::size_t row, std::size_t column) const {
  const Cell& cell = table_.rows[row][column];
  const QPalette palette = QApplication::palette();
  if (column == kFits) {
    const auto& text = std::get<std::string>(cell);
    if (text.starts_with("?")) return warning(palette);
    return text.starts_with("✗") ? bad(palette) : good(palette);
  }
  const auto* value = std::get_if<double>(&cell);
  if (!value || *value == 0) return {};
  const std::string& name = table_.columns[column].name;
  if (name == "headroom") return *value < 0 ? QVariant(bad(palette)) : QVariant();
  for (const Metric& metric : kMetrics) {
    if (!metric.delta || name != delta_name(metric)) continue;
    return (*value > 0) == metric.more_is_better ? good(palette) : bad(palette);
  }
  return {};
}

QVariant StrategyModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto row = static_cast<std::size_t>(index.row());
  const auto column = static_cast<std::size_t>(index.column());
  const Column& described = table_.columns[column];
  const bool is_baseline = strategy(index.row()) == session_.baseline();
  switch (role) {
    case Qt::DisplayRole: {
      const QString text = cell_text(table_.rows[row][column], described.unit);
      if (column == kName && is_baseline) return text + tr("  (baseline)");
      return described.name.starts_with("Δ") && text != "-" && !text.startsWith('-') ? "+" + text
                                                                                     : text;
    }
    case Qt::CheckStateRole:
      if (column != kName) return {};
      return session_.hidden().contains(strategy(index.row())) ? Qt::Unchecked : Qt::Checked;
    case kSortRole:
      return raw_value(table_.rows[row][column]);
    case Qt::TextAlignmentRole:
      return QVariant(Qt::AlignVCenter |
                      (described.align == Align::right ? Qt::AlignRight : Qt::AlignLeft));
    case Qt::ForegroundRole:
      return color(row, column);
    case Qt::FontRole: {
      QFont font;
      font.setBold(is_baseline);
      return font;
    }
    case Qt::ToolTipRole: {
      const StrategyStudy* strategy_study =
          session_.study()->find(std::get<std::string>(table_.rows[row][kName]));
      if (strategy_study == nullptr) return {};
      const QString message = QString::fromStdString(strategy_study->result.message);
      const QString what = describe(*strategy_study);
      return message.isEmpty() ? what : what + "\n" + message;
    }
    default:
      return {};
  }
}

bool StrategyModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid() || role != Qt::CheckStateRole || index.column() != int{kName}) return false;
  QStringList hidden = session_.hidden();
  hidden.removeAll(strategy(index.row()));
  if (value.toInt() == Qt::Unchecked) hidden << strategy(index.row());
  session_.hide(hidden);
  return true;
}

Qt::ItemFlags StrategyModel::flags(const QModelIndex& index) const {
  const Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  return index.column() == int{kName} ? flags | Qt::ItemIsUserCheckable : flags;
}

QVariant StrategyModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  const std::string& name = table_.columns[section].name;
  if (role == Qt::DisplayRole) return QString::fromStdString(name);
  if (role != Qt::ToolTipRole) return {};
  for (const Metric& metric : kMetrics) {
    if (name == metric.name) return tr(metric.explained);
    if (name == delta_name(metric)) return tr("Against the baseline, relative");
  }
  return {};
}

}  // namespace zl::gui
