#include "gui/models/strategy_text.h"

#include <QObject>
#include <QStringList>

#include "gui/units.h"
#include "scenarios/files/strategy_json.h"

namespace zl::gui {
namespace {

QString sharding(int stage) {
  switch (stage) {
    case 0:
      return QObject::tr("ZeRO 0: every rank holds weights, gradients and optimizer state (DDP)");
    case 1:
      return QObject::tr("ZeRO 1: optimizer state is sharded over the ranks");
    case 2:
      return QObject::tr("ZeRO 2: optimizer state and gradients are sharded over the ranks");
    default:
      return QObject::tr("ZeRO 3: optimizer state, gradients and weights are sharded");
  }
}

QString recomputation(const Strategy& strategy) {
  const RecomputeConfig& recompute = strategy.recompute;
  switch (recompute.mode) {
    case RecomputeMode::none:
      return {};
    case RecomputeMode::full:
      return QObject::tr("Recomputation: of each block only the input is kept");
    case RecomputeMode::automatic:
      return QObject::tr("Recomputation: of as few blocks as fit");
    case RecomputeMode::first_blocks:
      break;
    case RecomputeMode::every_k:
    case RecomputeMode::selective:
      return QObject::tr("Recomputation: %1")
          .arg(QString::fromStdString(recompute_text(recompute)));
  }
  if (recompute.stage_blocks.empty()) {
    return QObject::tr("Recomputation: of the first %1 blocks of each stage").arg(recompute.blocks);
  }
  QStringList numbers;
  for (const std::int64_t each : recompute.stage_blocks) numbers << QString::number(each);
  return QObject::tr("Recomputation: of the stages' first %1 blocks").arg(numbers.join(", "));
}

QString place(Tier tier) {
  return tier == Tier::cpu ? QObject::tr("host memory") : QObject::tr("files (NVMe)");
}

QString offload(const OffloadConfig& offload) {
  QStringList parts;
  if (offload.optimizer != Tier::device) {
    parts << QObject::tr("optimizer state in %1").arg(place(offload.optimizer));
  }
  if (offload.parameters != Tier::device) {
    parts << QObject::tr("weights in %1").arg(place(offload.parameters));
  }
  if (offload.activations) parts << QObject::tr("kept inputs in host memory");
  return parts.isEmpty() ? QString() : QObject::tr("Offload: %1").arg(parts.join(", "));
}

QString mesh(const Strategy& strategy) {
  QStringList parts;
  if (strategy.tensor.ranks > 1) {
    QString group = QObject::tr("tensor groups of %1").arg(strategy.tensor.ranks);
    if (strategy.tensor.sequence_parallel) group += QObject::tr(" with sequence parallelism");
    if (strategy.tensor.overlap) group += QObject::tr(" that exchange beside products");
    parts << group;
  }
  if (strategy.pipeline.ranks > 1) {
    parts << QObject::tr("pipelines of %1 (%2)")
                 .arg(QString::fromStdString(placement_text(strategy.pipeline)),
                      QString::fromUtf8(name_of(strategy.pipeline.schedule)));
  }
  if (strategy.zero.replicas > 1) parts << QObject::tr("%1 copies").arg(strategy.zero.replicas);
  return parts.isEmpty() ? QString() : QObject::tr("Mesh: %1").arg(parts.join(", "));
}

}  // namespace

std::string fits_text(Fits fits) {
  constexpr const char* kTexts[] = {"✓ yes", "? maybe", "✗ no"};
  return kTexts[static_cast<std::size_t>(fits)];
}

QString describe(const StrategyStudy& study) {
  const Strategy& strategy = study.imported.strategy;
  QStringList lines{sharding(strategy.zero.stage)};
  for (const QString& line : {recomputation(strategy), offload(strategy.offload), mesh(strategy)}) {
    if (!line.isEmpty()) lines << line;
  }
  const std::int64_t ranks =
      study.result.ranks / (strategy.tensor.ranks * strategy.pipeline.ranks);  // over data
  const std::int64_t sequences = strategy.micro_batch * strategy.gradient_accumulation * ranks;
  lines << QObject::tr("%1, micro-batch %2 x %3 accumulated x %4 ranks = %5 sequences a step")
               .arg(QString::fromStdString(study.result.precision))
               .arg(strategy.micro_batch)
               .arg(strategy.gradient_accumulation)
               .arg(ranks)
               .arg(count_text(static_cast<double>(sequences)));
  return lines.join('\n');
}

}  // namespace zl::gui
