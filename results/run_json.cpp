#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "results/format.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

Json number_or_null(double value) { return value == 0 ? Json() : Json(value); }

Json environment_json(const Environment& environment) {
  return {{"host", environment.host},         {"os", environment.os},
          {"kernel", environment.kernel},     {"cpu", environment.cpu},
          {"cores", environment.cores},       {"memory_bytes", environment.memory_bytes},
          {"gpu", environment.gpu},           {"driver", environment.driver},
          {"compiler", environment.compiler}, {"build", environment.build},
          {"commit", environment.commit}};
}

Json peak_json(const TaggedBytes& peak) {
  Json object;
  object["total"] = peak.total();
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    object[name_of(static_cast<MemoryTag>(i))] = peak.tag[i];
  }
  return object;
}

Json communication_json(const std::vector<CollectiveTotals>& communication) {
  Json list = Json::array();
  for (const CollectiveTotals& totals : communication) {
    list.push_back({{"collective", totals.collective},
                    {"group", totals.group},
                    {"link", totals.link},
                    {"count", totals.count},
                    {"bytes", totals.bytes}});
  }
  return list;
}

// Keys the contract does not name come after those it does.
void add_extra_keys(Json& object, const RunResult& run) {
  object["first_step"] = run.first_step;
  object["precision"] = run.precision;
  object["learning_rate"] = run.learning_rate;
  object["step_seconds"] = run.step_seconds;
  object["loss_scale"] = run.loss_scale;
  object["skipped_steps"] = run.skipped_steps;
  object["step_time_low"] = number_or_null(run.step_time_low);
  object["step_time_high"] = number_or_null(run.step_time_high);
  object["reserved_bytes"] = run.reserved_device;
  object["op_count"] = run.op_count;
  object["op_sequence_hash"] = fmt::format("{:016x}", run.op_sequence_hash);
  object["warnings"] = run.warnings;
}

Json result_json(const RunResult& run) {
  Json object = {
      {"strategy", run.strategy},
      {"outcome", name_of(run.outcome)},
      {"message", run.message},
      {"ranks", run.ranks},
      {"steps", run.steps},
      {"run_id", run.run_id ? Json(run.run_id) : Json()},
      {"loss", run.loss},
      {"grad_norm", run.grad_norm},
      {"tokens_per_second", run.tokens_per_second},
      {"step_time_seconds",
       {{"median", run.step_time.median}, {"min", run.step_time.min}, {"max", run.step_time.max}}},
      {"model_flops_per_step", run.model_flops_per_step},
      {"mfu", number_or_null(run.mfu)},
      {"mfu_convention", run.mfu_convention},
      {"peak_bytes",
       {{"device", peak_json(run.peak_device)},
        {"host", peak_json(run.peak_host)},
        {"nvme", peak_json(run.peak_nvme)}}},
      {"communication", communication_json(run.communication)},
      {"wire_bytes_per_step", run.wire_bytes_per_step},
      {"time_breakdown_seconds",
       {{"compute", run.time.compute},
        {"exposed_communication", run.time.exposed_communication},
        {"offload_stall", run.time.offload_stall},
        {"bubble", run.time.bubble},
        {"optimizer", run.time.optimizer}}}};
  add_extra_keys(object, run);
  return object;
}

}  // namespace

std::string run_json(const std::string& scenario_name, const std::string& backend,
                     const Environment& environment, std::span<const RunResult> results) {
  Json list = Json::array();
  for (const RunResult& run : results) list.push_back(result_json(run));
  const Json object = {{"schema", 1},
                       {"scenario", scenario_name},
                       {"backend", backend},
                       {"environment", environment_json(environment)},
                       {"results", std::move(list)}};
  return to_text(object);
}

}  // namespace zl
