#include "scenarios/cli/software_memory_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "scenarios/cli/output.h"

namespace zl::cli {
namespace {

std::string bar_text(const SoftwareBytes& bytes) {
  return fmt::format("{:+.0f} .. {:+.0f} %", (bytes.low - 1) * 100, (bytes.high - 1) * 100);
}

std::string fits_text(const NamedBytes& each) {
  return name_of(each.bytes.of_device().within(each.capacity));
}

}  // namespace

std::string software_memory_text(const std::vector<NamedBytes>& all, Format format) {
  if (all.empty()) return "";
  Table table{{{"strategy", Align::left},
               {"software", Align::left},
               {"fits", Align::left},
               {"of the device", Align::right, Unit::bytes},
               {"in use", Align::right, Unit::bytes},
               {"error bar"},
               {"supported", Align::left},
               {"at its peak in", Align::left}},
              {}};
  for (const NamedBytes& each : all) {
    const sim::HeldMemory& held = each.bytes.held;
    table.rows.push_back(
        {each.strategy, each.bytes.software, each.capacity > 0 ? Cell(fits_text(each)) : Cell(),
         held.device, held.total(), bar_text(each.bytes),
         std::string(each.bytes.is_supported ? "yes" : "by no published run"), held.when});
  }
  const std::string gap = format == Format::md ? "\n" : "";
  return "\nWhat the software itself would hold, which decides whether it fits, is a prediction; "
         "recorded bytes are this core's:\n" +
         gap + fitted_text(std::move(table), format);
}

Json software_bytes_json(const SoftwareBytes& bytes) {
  const TaggedBytes peak = bytes.held.peak();
  Json object = {{"software", bytes.software}, {"total", bytes.held.total()}};
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    const auto tag = static_cast<MemoryTag>(i);
    if (tag != MemoryTag::kv_cache) object[name_of(tag)] = peak.tag[i];
  }
  object["low"] = bytes.least();
  object["high"] = bytes.most();
  object["of_device"] = bytes.held.device;
  object["when"] = bytes.held.when;
  object["supported"] = bytes.is_supported;
  return object;
}

}  // namespace zl::cli
