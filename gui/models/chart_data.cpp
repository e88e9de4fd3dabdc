#include "gui/models/chart_data.h"

#include <algorithm>

#include "gui/models/meaning.h"
#include "gui/models/strategy_text.h"
#include "gui/models/timeline_data.h"
#include "gui/units.h"
#include "results/report_data.h"

namespace zl::gui {
namespace {

constexpr double kPicosecond = 1e-12;

QString name_of(const StrategyStudy& strategy) { return QString::fromStdString(strategy.name()); }

QString capacity_text(const Study& study) {
  return QObject::tr("capacity ") + bytes_text(static_cast<double>(study.budget));
}

const TaggedBytes& peak_of(const RunResult& run, MemoryTier tier) {
  if (tier == MemoryTier::host) return run.peak_host;
  return tier == MemoryTier::nvme ? run.peak_nvme : run.peak_device;
}

}  // namespace

BarData memory_bars(const Study& study, const Strategies& shown, MemoryTier tier) {
  BarData data;
  data.rows_name = "strategy";
  data.unit = Unit::bytes;
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    const auto tag = static_cast<MemoryTag>(i);
    data.series.emplace_back(zl::name_of(tag));
    data.styles.push_back(style_of(tag));
    data.explained.push_back(explained(tag));
  }
  if (tier == MemoryTier::device && study.budget > 0) {
    data.limit = static_cast<double>(study.budget);
    data.limit_text = capacity_text(study);
  }
  for (const StrategyStudy* each : shown) {
    const TaggedBytes& peak = peak_of(each->result, tier);
    BarRow row{name_of(*each), {}, {}, false};
    row.explained = describe(*each);
    for (const std::int64_t bytes : peak.tag) row.values.push_back(static_cast<double>(bytes));
    if (tier == MemoryTier::device && !each->fits()) {
      const auto reserved = static_cast<double>(each->result.need.reserved);
      row.note = reserved > 0 ? QObject::tr("✗ needs %1 reserved").arg(bytes_text(reserved))
                              : QObject::tr("✗ does not fit");
      row.bad = true;
    }
    data.rows.push_back(std::move(row));
  }
  return data;
}

BarData time_bars(const Strategies& shown) {
  BarData data;
  data.caption = QObject::tr("median of the steps after the first; error bars: 90 %");
  data.rows_name = "strategy";
  data.unit = Unit::seconds;
  data.series = {QObject::tr("compute"),   QObject::tr("exposed communication"),
                 QObject::tr("optimizer"), QObject::tr("offload stall"),
                 QObject::tr("bubble"),    QObject::tr("host and launch")};
  for (std::size_t i = 0; i < data.series.size(); ++i) {
    data.styles.push_back(style_of(static_cast<TimePart>(i)));
    data.explained.push_back(explained(static_cast<TimePart>(i)));
  }
  for (const StrategyStudy* each : shown) {
    const TimeBreakdown& time = each->result.time;
    BarRow row{
        name_of(*each),
        {time.compute, time.exposed_communication, time.optimizer, time.offload_stall, time.bubble},
        {},
        false};
    row.values.push_back(host_seconds(each->result));
    row.explained = describe(*each);
    row.low = each->result.step_time_low;
    row.high = each->result.step_time_high;
    if (!each->fits()) {
      row.note = QObject::tr("✗ does not fit");
      row.bad = true;
    }
    data.rows.push_back(std::move(row));
  }
  return data;
}

BarData traffic_bars(const Study& study, const Strategies& shown, bool per_parameter) {
  BarData data;
  data.rows_name = "strategy";
  data.unit = Unit::bytes;
  data.caption = QObject::tr("average of all steps of the run");
  const auto& links = study.cluster;
  const std::string& network =
      links.devices > links.node_devices ? links.inter.name : links.intra.name;
  const auto series_of = [&](const CollectiveTotals& totals) {
    // Between the tiers of one rank a copy names its own way.
    const std::string where = totals.group == "tiers" ? totals.link : totals.group + ", " + network;
    const QString name = QString::fromStdString(totals.collective + " (" + where + ")");
    const auto found = std::find(data.series.begin(), data.series.end(), name);
    if (found != data.series.end()) return static_cast<std::size_t>(found - data.series.begin());
    data.series.push_back(name);
    data.styles.push_back(style_of_move(totals.collective, totals.group, totals.link));
    data.explained.push_back(explained_move(totals.collective));
    return data.series.size() - 1;
  };
  for (const StrategyStudy* each : shown) {
    for (const CollectiveTotals& totals : each->result.communication) {
      if (totals.bytes > 0) series_of(totals);
    }
  }
  const double parameters =
      per_parameter ? static_cast<double>(study.scenario.model.parameters()) : 1;
  for (const StrategyStudy* each : shown) {
    BarRow row{name_of(*each), std::vector<double>(data.series.size()), {}, false};
    row.explained = describe(*each);
    const double steps = static_cast<double>(std::max<std::int64_t>(1, each->result.steps));
    for (const CollectiveTotals& totals : each->result.communication) {
      if (totals.bytes == 0) continue;
      row.values[series_of(totals)] += static_cast<double>(totals.bytes) / steps / parameters;
    }
    data.rows.push_back(std::move(row));
  }
  return data;
}

ScatterData tradeoff(const Study& study, const Strategies& shown) {
  ScatterData data;
  data.x_name = QObject::tr("peak device memory of a rank");
  data.y_name = QObject::tr("tokens/s");
  data.x_unit = Unit::bytes;
  if (study.budget > 0) {
    data.x_limit = static_cast<double>(study.budget);
    data.limit_text = capacity_text(study);
  }
  for (const StrategyStudy* each : shown) {
    data.points.push_back({name_of(*each), static_cast<double>(each->result.peak_device.total()),
                           each->result.tokens_per_second, each->fits(), 0, 0,
                           style_of_strategy(name_of(*each))});
  }
  return data;
}

LineData memory_lines(const Study& study, const Strategies& shown, bool one_step) {
  LineData data;
  data.x_name = one_step ? QObject::tr("share of a step, of each strategy its own")
                         : QObject::tr("time since the start of set-up");
  data.y_name = QObject::tr("device memory of a rank");
  data.x_unit = one_step ? Unit::fraction : Unit::seconds;
  data.y_unit = Unit::bytes;
  data.steps = true;
  if (study.budget > 0) {
    data.limit = static_cast<double>(study.budget);
    data.limit_text = capacity_text(study);
  }
  for (const StrategyStudy* each : shown) {
    Curve curve{name_of(*each), {}, {}, style_of_strategy(name_of(*each))};
    curve.x.reserve(each->memory.size() + 1);
    curve.y.reserve(each->memory.size() + 1);
    const TimelinePlot::Range step = steady_step(*each);
    const auto add = [&](std::int64_t time, double bytes) {
      const double seconds = static_cast<double>(time) * kPicosecond;
      curve.x.push_back(one_step ? (seconds - step.from) / step.length() : seconds);
      curve.y.push_back(bytes);
    };
    std::size_t first = 0;
    if (one_step) {
      // What was live when the step began is where its curve begins.
      while (first + 1 < each->memory.size() &&
             static_cast<double>(each->memory[first + 1].time) * kPicosecond <= step.from) {
        ++first;
      }
    }
    for (std::size_t i = first; i < each->memory.size(); ++i) {
      add(each->memory[i].time, static_cast<double>(each->memory[i].total()));
    }
    if (one_step && !curve.x.empty()) curve.x.front() = std::max(0.0, curve.x.front());
    // It holds until the strategy's end.
    if (!curve.y.empty()) add(each->timeline.total, curve.y.back());
    data.curves.push_back(std::move(curve));
  }
  return data;
}

}  // namespace zl::gui
