#include "scenarios/run/explain_tables.h"

namespace zl {
namespace {

Cell known(double value) { return value > 0 ? Cell(value) : Cell(); }

std::string units_text(const sim::HeldItem& item) {
  if (item.first_unit < 0) return "";
  return item.last_unit > item.first_unit
             ? std::to_string(item.first_unit) + "-" + std::to_string(item.last_unit)
             : std::to_string(item.first_unit);
}

}  // namespace

Table parts_table(const RunResult& run) {
  const TimeBreakdown& time = run.time;
  const double step = run.step_time.median;
  const double host = step - time.compute - time.exposed_communication - time.offload_stall -
                      time.bubble - time.optimizer;
  Table table{{{"part", Align::left},
               {"time", Align::right, Unit::seconds},
               {"share", Align::right, Unit::fraction}},
              {}};
  const auto row = [&](const char* name, double seconds) {
    if (seconds > 0) table.rows.push_back({std::string(name), seconds, seconds / step});
  };
  row("compute", time.compute);
  row("exposed communication of data", time.exposed_data());
  row("exposed communication of tensors", time.exposed_tensor);
  row("exposed communication of the pipeline", time.exposed_pipeline);
  row("bubble", time.bubble);
  row("waits for offload", time.offload_stall);
  row("optimizer", time.optimizer);
  row("waits for the host", host);
  return table;
}

Table step_table(const Explanation& why) {
  Table table{{{"operation", Align::left},
               {"phase", Align::left},
               {"layers", Align::left},
               {"times"},
               {"time", Align::right, Unit::seconds},
               {"share", Align::right, Unit::fraction},
               {"FLOPs"},
               {"bytes", Align::right, Unit::bytes},
               {"FLOP/s", Align::right, Unit::flop_rate},
               {"bytes/s", Align::right, Unit::byte_rate},
               {"of peak", Align::right, Unit::fraction},
               {"limit", Align::left}},
              {}};
  for (const StepItem& each : why.step) {
    const bool takes = each.seconds > 0;
    table.rows.push_back({each.operation, each.phase, each.layers, each.count, each.seconds,
                          each.seconds / why.result.step_time.median, known(each.flops),
                          known(each.bytes), takes ? known(each.flops / each.seconds) : Cell(),
                          takes ? known(each.bytes / each.seconds) : Cell(), known(each.of_peak()),
                          each.limit});
  }
  return table;
}

Table peak_table(const Explanation& why) {
  Table table{{{"tag", Align::left},
               {"what", Align::left},
               {"units", Align::left},
               {"blocks"},
               {"bytes", Align::right, Unit::bytes},
               {"share", Align::right, Unit::fraction}},
              {}};
  const auto whole = static_cast<double>(why.result.peak_device.total());
  for (const sim::HeldItem& each : why.peak) {
    table.rows.push_back({std::string(name_of(each.tag)), each.what, units_text(each), each.blocks,
                          each.bytes, static_cast<double>(each.bytes) / whole});
  }
  return table;
}

Table software_parts_table(const SoftwareBytes& bytes) {
  Table table{{{"tag", Align::left},
               {"what", Align::left},
               {"layers", Align::left},
               {"bytes", Align::right, Unit::bytes},
               {"share", Align::right, Unit::fraction}},
              {}};
  const auto whole = static_cast<double>(bytes.held.total());
  for (const sim::HeldPart& part : bytes.held.parts) {
    table.rows.push_back({std::string(name_of(part.tag)), std::string(part.what),
                          std::string(part.layers), part.bytes,
                          static_cast<double>(part.bytes) / whole});
  }
  return table;
}

Table lever_table(const Explanation& why) {
  Table table{{{"twice", Align::left},
               {"step time", Align::right, Unit::seconds},
               {"saves", Align::right, Unit::fraction}},
              {}};
  const double step = why.result.step_time.median;
  for (const Lever& each : why.levers) {
    table.rows.push_back({each.twice, each.step_seconds, 1 - each.step_seconds / step});
  }
  return table;
}

}  // namespace zl
