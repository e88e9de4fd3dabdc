#include "gui/models/chart_data.h"

#include <algorithm>

#include "gui/models/meaning.h"
#include "gui/models/strategy_text.h"
#include "gui/models/timeline_data.h"
#include "gui/units.h"
#include "results/report_data.h"
#include "simulator/cost/collective.h"

namespace zl::gui {
namespace {

QString name_of(const StrategyStudy& strategy) { return QString::fromStdString(strategy.name()); }

QString capacity_text(const Study& study) {
  return QObject::tr("capacity ") + bytes_text(static_cast<double>(study.budget));
}

}  // namespace

namespace {

// In the order of the bars. Those of a mesh are left out where no strategy has them.
struct PartOfStep {
  TimePart part;
  const char* name;
  double (*seconds)(const RunResult&);
  bool of_mesh = false;
};
constexpr PartOfStep kPartsOfStep[] = {
    {TimePart::compute, "compute", [](const RunResult& run) { return run.time.compute; }},
    {TimePart::communication, "exposed communication",
     [](const RunResult& run) { return run.time.exposed_data(); }},
    {TimePart::tensor, "exposed tensor communication",
     [](const RunResult& run) { return run.time.exposed_tensor; }, true},
    {TimePart::pipeline, "exposed pipeline communication",
     [](const RunResult& run) { return run.time.exposed_pipeline; }, true},
    {TimePart::optimizer, "optimizer", [](const RunResult& run) { return run.time.optimizer; }},
    {TimePart::stall, "offload stall", [](const RunResult& run) { return run.time.offload_stall; }},
    {TimePart::bubble, "bubble", [](const RunResult& run) { return run.time.bubble; }},
    {TimePart::host, "host and launch", host_seconds}};

}  // namespace

BarData time_bars(const Strategies& shown) {
  BarData data;
  data.caption = QObject::tr("median of the steps after the first; error bars: 90 %");
  data.rows_name = "strategy";
  data.unit = Unit::seconds;
  std::vector<const PartOfStep*> parts;
  for (const PartOfStep& part : kPartsOfStep) {
    const auto has = [&](const StrategyStudy* each) { return part.seconds(each->result) > 0; };
    if (part.of_mesh && std::ranges::none_of(shown, has)) continue;
    parts.push_back(&part);
    data.series.push_back(QObject::tr(part.name));
    data.styles.push_back(style_of(part.part));
    data.explained.push_back(explained(part.part));
  }
  for (const StrategyStudy* each : shown) {
    BarRow row{name_of(*each), {}, {}, false};
    for (const PartOfStep* part : parts) row.values.push_back(part->seconds(each->result));
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

namespace {

// Along an axis of the mesh: within the nodes, or between them where a group reaches over one.
std::string link_of(const Study& study, const StrategyStudy& strategy, const std::string& axis) {
  const Mesh mesh = mesh_of(strategy.imported.strategy, static_cast<int>(study.scenario.run.ranks));
  for (std::size_t i = 0; i < kAxes; ++i) {
    const auto each = static_cast<Axis>(i);
    if (axis != name_of(each)) continue;
    const sim::Placement at =
        sim::place(mesh.size(each), mesh.stride(each), study.cluster.node_devices);
    return at.nodes > 1 ? study.cluster.inter.name : study.cluster.intra.name;
  }
  return study.cluster.inter.name;
}

QString move_text(const Study& study, const StrategyStudy& strategy,
                  const CollectiveTotals& totals) {
  // Between the tiers of one rank a copy names its own way.
  std::string where = totals.link;
  if (totals.group != "tiers") {
    where = totals.axis + (totals.group == "control" ? " control" : "") + ", " +
            link_of(study, strategy, totals.axis);
  }
  return QString::fromStdString(totals.collective + " (" + where + ")");
}

}  // namespace

BarData traffic_bars(const Study& study, const Strategies& shown, bool per_parameter) {
  BarData data;
  data.rows_name = "strategy";
  data.unit = Unit::bytes;
  data.caption = QObject::tr("average of all steps of the run");
  const auto series_of = [&](const StrategyStudy& strategy, const CollectiveTotals& totals) {
    const QString name = move_text(study, strategy, totals);
    const auto found = std::find(data.series.begin(), data.series.end(), name);
    if (found != data.series.end()) return static_cast<std::size_t>(found - data.series.begin());
    data.series.push_back(name);
    data.styles.push_back(style_of_move(totals));
    data.explained.push_back(explained_move(totals.collective));
    return data.series.size() - 1;
  };
  for (const StrategyStudy* each : shown) {
    for (const CollectiveTotals& totals : each->result.communication) {
      if (totals.bytes > 0) series_of(*each, totals);
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
      row.values[series_of(*each, totals)] +=
          static_cast<double>(totals.bytes) / steps / parameters;
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
    data.points.push_back({name_of(*each), static_cast<double>(bytes_at_peak(each->result)),
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
    const std::vector<sim::MemoryPoint> memory = each->memory();
    curve.x.reserve(memory.size() + 1);
    curve.y.reserve(memory.size() + 1);
    const TimelinePlot::Range step = steady_step(*each);
    const auto add = [&](std::int64_t time, double bytes) {
      const double seconds = to_seconds(time);
      curve.x.push_back(one_step ? (seconds - step.from) / step.length() : seconds);
      curve.y.push_back(bytes);
    };
    std::size_t first = 0;
    if (one_step) {
      // What was live when the step began is where its curve begins.
      while (first + 1 < memory.size() && to_seconds(memory[first + 1].time) <= step.from) {
        ++first;
      }
    }
    for (std::size_t i = first; i < memory.size(); ++i) {
      add(memory[i].time, static_cast<double>(memory[i].total()));
    }
    if (one_step && !curve.x.empty()) curve.x.front() = std::max(0.0, curve.x.front());
    // It holds until the strategy's end.
    if (!curve.y.empty()) add(each->timeline().total, curve.y.back());
    data.curves.push_back(std::move(curve));
  }
  return data;
}

}  // namespace zl::gui
