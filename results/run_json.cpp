#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "results/compare.h"
#include "results/format.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

Json number_or_null(double value) { return value == 0 ? Json() : Json(value); }

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json whole_or_null(std::int64_t value) { return value == 0 ? Json() : Json(value); }

// Null where the run has no numbers: who takes the least step time must not pick one that failed.
template <class Value>
Json of(const RunResult& run, const Value& value) {
  return has_numbers(run) ? Json(value) : Json();
}

Json environment_json(const Environment& environment) {
  return {{"host", environment.host},         {"os", environment.os},
          {"kernel", environment.kernel},     {"cpu", environment.cpu},
          {"cores", environment.cores},       {"memory_bytes", environment.memory_bytes},
          {"gpu", environment.gpu},           {"driver", environment.driver},
          {"compiler", environment.compiler}, {"build", environment.build},
          {"commit", environment.commit}};
}

Json peak_json(const RunResult& run, const TaggedBytes& peak) {
  Json object;
  object["total"] = of(run, peak.total());
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    const auto tag = static_cast<MemoryTag>(i);
    if (tag == MemoryTag::kv_cache && peak.tag[i] == 0) continue;  // trainings have none
    object[name_of(tag)] = of(run, peak.tag[i]);
  }
  return object;
}

Json need_json(const RunResult& run) {
  const MemoryNeed& need = run.need;
  if (need.reserved == 0) return {};
  return {{"device_reserved", need.reserved},
          {"device_in_use", need.in_use},
          {"device_fragmentation", need.fragmentation()},
          {"host", need.host},
          {"nvme", need.nvme}};
}

// A prediction; null: not known, or the software is this core.
Json software_held_json(const HeldBySoftware& held) {
  if (!held.is_known()) return {};
  return {{"in_use", held.in_use},
          {"of_device", held.device},
          {"of_device_low", held.low},
          {"of_device_high", held.high},
          {"when", held.when}};
}

// What was run, in every row: two rows that differ say in what.
void add_setup(Json& object, const RunResult& run) {
  const RunSetup& setup = run.setup;
  object["model"] = text_or_null(setup.model);
  object["cluster"] = text_or_null(setup.cluster);
  object["software"] = text_or_null(setup.software);
  object["data"] = text_or_null(setup.data);
  object["sequence_length"] = whole_or_null(setup.sequence_length);
  object["micro_batch"] = whole_or_null(setup.micro_batch);
  object["gradient_accumulation"] = whole_or_null(setup.gradient_accumulation);
  object["tokens_per_step"] = whole_or_null(setup.tokens_per_step);
  object["priced_from"] = text_or_null(run.priced_from);
  object["own_step_error"] = number_or_null(run.own_step_error);
  object["device_capacity_bytes"] = whole_or_null(run.device_capacity);
  object["needed_bytes"] = need_json(run);
  object["fits"] = judges_memory(run) ? Json(name_of(fits(run))) : Json();
  object["held_by_software"] = software_held_json(run.software_held);
}

Json communication_json(const std::vector<CollectiveTotals>& communication) {
  Json list = Json::array();
  for (const CollectiveTotals& totals : communication) {
    list.push_back({{"collective", totals.collective},
                    {"group", totals.group},
                    {"axis", totals.axis},
                    {"link", totals.link},
                    {"count", totals.count},
                    {"bytes", totals.bytes}});
  }
  return list;
}

Json time_json(const RunResult& run, const TimeBreakdown& time) {
  return {{"compute", of(run, time.compute)},
          {"exposed_communication", of(run, time.exposed_communication)},
          {"offload_stall", of(run, time.offload_stall)},
          {"bubble", of(run, time.bubble)},
          {"optimizer", of(run, time.optimizer)},
          {"exposed_tensor", of(run, time.exposed_tensor)},
          {"exposed_pipeline", of(run, time.exposed_pipeline)}};
}

Json stages_json(const RunResult& run) {
  Json list = Json::array();
  for (const StageResult& stage : run.stages) {
    list.push_back({{"rank", stage.rank},
                    {"ranks", stage.ranks},
                    {"peak_bytes", peak_json(run, stage.peak_device)},
                    {"reserved_bytes", stage.reserved_device},
                    {"step_seconds", stage.step_seconds},
                    {"time_breakdown_seconds", time_json(run, stage.time)}});
  }
  return list;
}

// Null: nothing judged the model.
Json evaluation_json(const RunResult& run) {
  if (run.evaluations.empty()) return {};
  Json points = Json::array();
  for (const EvaluationPoint& point : run.evaluations) {
    points.push_back({{"step", point.step},
                      {"loss", point.loss},
                      {"perplexity", point.perplexity()},
                      {"tokens", point.tokens}});
  }
  const EvaluationPoint* best = best_evaluation(run);
  return {{"data", text_or_null(run.setup.eval_data)},
          {"best_step", best == nullptr ? Json() : Json(best->step)},
          {"points", std::move(points)}};
}

// Null where no labels were told.
Json labels_json(const LabelScores& labels) {
  if (labels.rows == 0) return {};
  Json by_label = Json::array();
  for (const LabelScores::Of& of : labels.by_label) {
    by_label.push_back({{"label", of.name},
                        {"texts", of.texts},
                        {"told", of.told},
                        {"correct", of.correct},
                        {"f1", of.f1()}});
  }
  return {
      {"data", labels.data},
      {"texts", labels.rows},
      {"loss", labels.loss},
      {"accuracy", labels.accuracy},
      {"accuracy_95", {labels.accuracy_low, labels.accuracy_high}},
      {"macro_f1", labels.macro_f1},
      {"majority",
       {{"accuracy", labels.majority_accuracy}, {"macro_f1", labels.majority_macro_f1}}},
      {"naive_bayes", {{"accuracy", labels.words_accuracy}, {"macro_f1", labels.words_macro_f1}}},
      {"by_label", std::move(by_label)}};
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
  object["reserved_bytes"] = of(run, run.reserved_device);
  object["op_count"] = of(run, run.op_count);
  object["op_sequence_hash"] = of(run, fmt::format("{:016x}", run.op_sequence_hash));
  object["rank"] = of(run, run.rank);
  object["stages"] = stages_json(run);
  object["evaluation"] = evaluation_json(run);
  object["labels"] = labels_json(run.labels);
  object["warnings"] = run.warnings;
  add_setup(object, run);
}

Json result_json(const RunResult& run) {
  Json object = {{"strategy", run.strategy},
                 {"outcome", name_of(run.outcome)},
                 {"message", run.message},
                 {"ranks", run.ranks},
                 {"steps", run.steps},
                 {"run_id", run.run_id ? Json(run.run_id) : Json()},
                 {"loss", run.loss},
                 {"grad_norm", run.grad_norm},
                 {"tokens_per_second", of(run, run.tokens_per_second)},
                 {"step_time_seconds",
                  {{"median", of(run, run.step_time.median)},
                   {"min", of(run, run.step_time.min)},
                   {"max", of(run, run.step_time.max)}}},
                 {"model_flops_per_step", of(run, run.model_flops_per_step)},
                 {"mfu", number_or_null(run.mfu)},
                 {"mfu_convention", run.mfu_convention},
                 {"peak_bytes",
                  {{"device", peak_json(run, run.peak_device)},
                   {"host", peak_json(run, run.peak_host)},
                   {"nvme", peak_json(run, run.peak_nvme)}}},
                 {"communication", communication_json(run.communication)},
                 {"wire_bytes_per_step", of(run, run.wire_bytes_per_step)},
                 {"time_breakdown_seconds", time_json(run, run.time)}};
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
