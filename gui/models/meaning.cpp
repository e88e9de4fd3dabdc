#include "gui/models/meaning.h"

#include <QHash>
#include <QObject>
#include <algorithm>
#include <array>

#include "core/base/collective_kind.h"
#include "scenarios/files/catalog.h"

namespace zl::gui {
namespace {

constexpr std::size_t kBlue = 0, kOrange = 1, kGreen = 2, kLightBlue = 3, kVermilion = 4, kPink = 5,
                      kYellow = 6, kGrey = 7;
constexpr std::size_t kOther = 8;  // the same colour under another hatch

}  // namespace

std::size_t style_of(MemoryTag tag) {
  constexpr std::array<std::size_t, kMemoryTags> kStyles{kBlue,      kOrange, kGreen,  kLightBlue,
                                                         kVermilion, kPink,   kYellow, kGrey};
  return kStyles[static_cast<std::size_t>(tag)];
}

std::size_t style_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return kLightBlue;
    case Phase::backward:
      return kOrange;
    case Phase::recompute:
    case Phase::recompute_products:
      return kPink;
    case Phase::reduce:
      return kVermilion;
    case Phase::optimizer:
      return kGreen;
    case Phase::gather:
      return kBlue;
    case Phase::init:
      return kGrey + kOther;
    case Phase::weight_gradient:
      return kYellow;
    case Phase::other:
      return kGrey;
  }
  return kGrey;
}

std::size_t style_of(TimePart part) {
  constexpr std::array<std::size_t, 8> kStyles{kLightBlue, kVermilion, kGreen,  kYellow,
                                               kPink,      kGrey,      kOrange, kBlue};
  return kStyles[static_cast<std::size_t>(part)];
}

std::size_t style_of_move(const CollectiveTotals& totals) {
  const std::string& collective = totals.collective;
  if (totals.group == "control") return kGrey;
  if (totals.axis == name_of(Axis::pipeline)) return kVermilion;
  if (totals.axis == name_of(Axis::tensor)) {
    return collective == "all_reduce" ? kGreen
                                      : kLightBlue + (collective == "all_gather" ? 0 : kOther);
  }
  if (totals.axis == name_of(Axis::replicate)) return kGreen + kOther;
  if (collective == "all_gather") return kBlue;
  if (collective == "reduce_scatter") return kOrange;
  if (collective == "all_reduce") return kOrange + kOther;
  if (collective == "broadcast") return kBlue + kOther;
  if (totals.group != "tiers") return kVermilion;
  if (totals.link == "device_to_host") return kYellow;
  if (totals.link == "host_to_device") return kYellow + kOther;
  return totals.link == "file_to_host" ? kPink : kPink + kOther;
}

std::size_t style_of_strategy(const QString& name) {
  static QHash<QString, std::size_t> known = [] {
    QHash<QString, std::size_t> first;
    for (const char* zero : {"zero-0", "zero-1", "zero-2", "zero-3", "zero-3-recompute"}) {
      first.insert(zero, static_cast<std::size_t>(first.size()));
    }
    for (const std::string& each : catalog_names("strategies")) {
      const QString text = QString::fromStdString(each);
      if (!first.contains(text)) first.insert(text, static_cast<std::size_t>(first.size()));
    }
    return first;
  }();
  const auto found = known.constFind(name);
  if (found != known.constEnd()) return *found;
  const auto next = static_cast<std::size_t>(known.size());
  known.insert(name, next);
  return next;
}

QString explained(MemoryTag tag) {
  switch (tag) {
    case MemoryTag::parameter:
      return QObject::tr("Weights in the type of the products, gathered or sharded");
    case MemoryTag::gradient:
      return QObject::tr("Gradients that are kept until the optimizer has used them");
    case MemoryTag::optimizer:
      return QObject::tr("fp32 weights and moments of the optimizer");
    case MemoryTag::activation:
      return QObject::tr("Kept for the backward, and what a block needs while it runs");
    case MemoryTag::communication:
      return QObject::tr("Gradient buckets, and copies made only to be sent");
    case MemoryTag::workspace:
      return QObject::tr("Scratch of single operations, chunks of logits");
    case MemoryTag::staging:
      return QObject::tr("Token ids, scalars, and what is on its way between tiers");
    case MemoryTag::kv_cache:
      return QObject::tr("Keys and values of what was generated so far");
  }
  return {};
}

QString explained(Phase phase) {
  switch (phase) {
    case Phase::init:
      return QObject::tr("Before the first step: weights and optimizer state");
    case Phase::forward:
      return QObject::tr("From the tokens to the loss");
    case Phase::backward:
      return QObject::tr("From the loss to the gradients");
    case Phase::weight_gradient:
      return QObject::tr("The half of a backward that no other stage waits for");
    case Phase::recompute:
      return QObject::tr("The forward again, of what was not kept");
    case Phase::recompute_products:
      return QObject::tr("The forward again, but for attention, whose result was kept");
    case Phase::reduce:
      return QObject::tr("Gradients are added up over the ranks");
    case Phase::optimizer:
      return QObject::tr("Clipping and the update of the weights");
    case Phase::gather:
      return QObject::tr("Sharded weights are brought together");
    case Phase::other:
      return QObject::tr("Outside of these parts of a step");
  }
  return {};
}

QString explained(TimePart part) {
  switch (part) {
    case TimePart::compute:
      return QObject::tr("Forward, backward and recomputation on the device");
    case TimePart::communication:
      return QObject::tr("The device waits for a collective over data that nothing hides");
    case TimePart::tensor:
      return QObject::tr("The device waits for its tensor group: halves of a layer are added up");
    case TimePart::pipeline:
      return QObject::tr("The device waits for a message between stages that nothing hides");
    case TimePart::optimizer:
      return QObject::tr("Clipping and the update of the weights");
    case TimePart::stall:
      return QObject::tr("The device waits for state on its way from host memory or files");
    case TimePart::bubble:
      return QObject::tr("A pipeline stage waits for its neighbours");
    case TimePart::host:
      return QObject::tr("The device waits for the host to launch its next operation");
  }
  return {};
}

QString explained_move(const std::string& collective) {
  if (collective == "all_gather") return QObject::tr("Every rank gets all shards: weights (ZeRO)");
  if (collective == "reduce_scatter") {
    return QObject::tr("Gradients are added up, each rank keeps its shard");
  }
  if (collective == "all_reduce") return QObject::tr("Gradients are added up, every rank gets all");
  if (collective == "broadcast") return QObject::tr("One rank sends the same to all others");
  if (collective == "all_to_all") return QObject::tr("Every rank sends a part to each other one");
  if (collective == "send") return QObject::tr("A stage of the pipeline hands on what it made");
  if (collective == "copy") return QObject::tr("Between the memory of the device and of the host");
  return QObject::tr("Between host memory and files");
}

}  // namespace zl::gui
