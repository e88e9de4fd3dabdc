// Bars of what a rank holds at its peak: of its device by what the software would hold, where that
// is known, else by the recording.
#include "gui/models/chart_data.h"
#include "gui/models/meaning.h"
#include "gui/models/strategy_text.h"
#include "gui/units.h"

namespace zl::gui {
namespace {

const TaggedBytes& peak_of(const RunResult& run, MemoryTier tier) {
  if (tier == MemoryTier::host) return run.peak_host;
  return tier == MemoryTier::nvme ? run.peak_nvme : run.peak_device;
}

// A series for each tag, and of predictions what is no tensor.
BarData empty_bars(const Study& study, MemoryTier tier, const SoftwareBytes* any) {
  BarData data;
  data.unit = Unit::bytes;
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    const auto tag = static_cast<MemoryTag>(i);
    data.series.emplace_back(name_of(tag));
    data.styles.push_back(style_of(tag));
    data.explained.push_back(explained(tag));
  }
  if (any) {
    data.series.push_back(QObject::tr("allocator and libraries"));
    data.styles.push_back(style_of(TimePart::host));
    data.explained.push_back(
        QObject::tr("what the allocator reserves beside tensors, the context and libraries"));
    data.caption = QObject::tr("what %1 would hold, a prediction; error bars: 90 %")
                       .arg(QString::fromStdString(any->software));
  }
  if (tier == MemoryTier::device && study.budget > 0) {
    data.limit = static_cast<double>(study.budget);
    data.limit_text = QObject::tr("capacity ") + bytes_text(*data.limit);
  }
  return data;
}

void add_values(const TaggedBytes& peak, BarRow& row) {
  for (const std::int64_t bytes : peak.tag) row.values.push_back(static_cast<double>(bytes));
}

void add_predicted(const SoftwareBytes& bytes, const sim::HeldMemory& held, BarRow& row) {
  add_values(held.peak(), row);
  row.values.push_back(static_cast<double>(held.device - held.total()));
  const HeldBySoftware of_device = bytes.of_device(held);
  row.low = static_cast<double>(of_device.low);
  row.high = static_cast<double>(of_device.high);
}

}  // namespace

BarData memory_bars(const Study& study, const Strategies& shown, MemoryTier tier) {
  const bool of_device = tier == MemoryTier::device;
  const SoftwareBytes* any = nullptr;
  for (const StrategyStudy* each : shown) {
    if (of_device && each->software) any = each->software.get();
  }
  BarData data = empty_bars(study, tier, any);
  data.rows_name = "strategy";
  for (const StrategyStudy* shown_one : shown) {
    const StrategyStudy& each = *shown_one;
    BarRow row{QString::fromStdString(each.name()), {}, {}, false};
    row.explained = describe(each);
    if (of_device && each.software) {
      add_predicted(*each.software, each.software->held, row);
    } else {
      add_values(peak_of(each.result, tier), row);
    }
    row.values.resize(data.series.size());
    if (of_device && !each.fits()) {
      const auto reserved = static_cast<double>(each.result.need.reserved);
      row.note = reserved > 0 ? QObject::tr("✗ needs %1 reserved").arg(bytes_text(reserved))
                              : QObject::tr("✗ does not fit");
      row.bad = true;
    } else if (of_device && fits(each.result) == Fits::maybe) {
      row.note = QObject::tr("? may not fit");
    }
    data.rows.push_back(std::move(row));
  }
  return data;
}

BarData stage_memory_bars(const Study& study, const StrategyStudy& strategy) {
  const SoftwareBytes* bytes = strategy.software.get();
  BarData data = empty_bars(study, MemoryTier::device, bytes);
  data.rows_name = "stage";
  const QString caption = QObject::tr("%1: the highest peak is rank %2's")
                              .arg(QString::fromStdString(strategy.name()))
                              .arg(strategy.result.rank);
  data.caption = data.caption.isEmpty() ? caption : caption + "; " + data.caption;
  for (const StageResult& stage : strategy.result.stages) {
    const std::size_t index = data.rows.size();
    BarRow row{QObject::tr("stage %1").arg(index), {}, {}, false};
    if (bytes) {
      add_predicted(*bytes, bytes->ranks[index], row);
    } else {
      add_values(stage.peak_device, row);
    }
    const int last = stage.rank + stage.ranks - 1;
    row.explained = stage.ranks == 1 ? QObject::tr("rank %1").arg(stage.rank)
                                     : QObject::tr("ranks %1-%2").arg(stage.rank).arg(last);
    const auto needed = bytes ? row.low : static_cast<double>(stage.reserved_device);
    row.bad = study.budget > 0 && needed > static_cast<double>(study.budget);
    if (row.bad) {
      row.note =
          QObject::tr("✗ needs %1 reserved")
              .arg(bytes_text(bytes ? static_cast<double>(bytes->ranks[index].device) : needed));
    } else if (stage.rank == strategy.result.rank) {
      row.note = QObject::tr("highest peak: rank %1").arg(stage.rank);
    }
    data.rows.push_back(std::move(row));
  }
  return data;
}

}  // namespace zl::gui
