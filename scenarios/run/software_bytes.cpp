#include "scenarios/run/software_bytes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/bytes.h"
#include "scenarios/files/clusters.h"
#include "simulator/error_bar.h"

namespace zl {
namespace {

std::int64_t times(double factor, std::int64_t bytes) {
  return std::llround(factor * static_cast<double>(bytes));
}

}  // namespace

std::int64_t SoftwareBytes::least() const { return times(low, held.total()); }
std::int64_t SoftwareBytes::most() const { return times(high, held.total()); }

HeldBySoftware SoftwareBytes::of_device(const sim::HeldMemory& rank) const {
  return {.in_use = rank.total(),
          .device = rank.device,
          // Without what the allocator reserves beside them, which it can give back.
          .low = times(low, rank.total()) + rank.device - rank.reserved,
          .high = times(high, rank.device),
          .when = rank.when};
}

SoftwareBytesOrWhy bytes_or_why(const Scenario& scenario, const Strategy& strategy) {
  const std::string name = scenario_software(scenario);
  if (name.empty() || name == kOwnSoftware) return {};
  return bytes_under(load_software(name), scenario, strategy);
}

double SoftwareBytes::low_of(double error) { return std::exp(-sim::kNineInTen * error); }

SoftwareBytesOrWhy bytes_under(const sim::Software& software, const Scenario& scenario,
                               const Strategy& strategy) {
  if (!software.held) return {{}, "the profile " + software.name + " says nothing of it"};
  if (std::string why = sim::why_not_held(scenario.model, strategy, *software.held); !why.empty()) {
    return {{}, std::move(why)};
  }
  const int ranks = static_cast<int>(std::max<std::int64_t>(1, scenario.run.ranks));
  SoftwareBytes bytes{.software = software.name, .held = {}, .ranks = {}};
  bytes.ranks = sim::held_by_rank(scenario.model, strategy, ranks, scenario.run.sequence_length,
                                  *software.held);
  bytes.held = *std::ranges::max_element(bytes.ranks, {}, &sim::HeldMemory::device);
  bytes.is_supported = sim::is_supported(strategy, *software.held);
  const double error = bytes.is_supported ? software.held->error : software.held->unsupported_error;
  bytes.low = SoftwareBytes::low_of(error);
  bytes.high = std::exp(sim::kNineInTen * error);
  return {std::move(bytes), ""};
}

HeldBySoftware held_by_software(const Scenario& scenario, const Strategy& resolved) {
  const auto bytes = bytes_or_why(scenario, resolved).bytes;
  return bytes ? bytes->of_device() : HeldBySoftware();
}

std::string refusal_text(const Scenario& scenario, const HeldBySoftware& held,
                         std::int64_t capacity) {
  return scenario_software(scenario) + " would hold " + format_bytes(held.device) + " (" +
         format_bytes(held.low) + " to " + format_bytes(held.high) + "), " +
         format_bytes(held.device - capacity) + " more than the device's " +
         format_bytes(capacity) + ", most of it in the " + held.when;
}

}  // namespace zl
