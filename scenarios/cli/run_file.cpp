#include "scenarios/cli/run_file.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json_limits.h"
#include "core/base/text.h"
#include "results/stored_backend.h"
#include "simulator/json/reading.h"

namespace zl::cli {
namespace {

// Null stands for a number that JSON cannot write.
double number(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

double number_or_zero(const Json& value) { return value.is_null() ? 0 : value.get<double>(); }

// Sums of a few of them are numbers, too. Null is of a run that has none.
std::int64_t whole(const Json& value, const char* key) {
  if (value.is_null()) return 0;
  const std::int64_t number = integer_at(value, key);
  if (number >= 0 && number <= std::int64_t{1} << 60) return number;
  throw Error(ErrorCode::invalid, std::string(key) + ": " + shown(value) + " is not in 0..2^60");
}

std::int64_t whole_or_zero(const Json& object, const char* key) {
  return object.contains(key) ? whole(object[key], key) : 0;
}

double number_or_none(const Json& object, const char* key) {
  return object.contains(key) ? number_or_zero(object[key]) : 0;
}

std::string text_or_empty(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

// Older files have none of it.
RunSetup setup_of(const Json& object) {
  return {.model = text_or_empty(object, "model"),
          .cluster = text_or_empty(object, "cluster"),
          .software = text_or_empty(object, "software"),
          .data = text_or_empty(object, "data"),
          .sequence_length = whole_or_zero(object, "sequence_length"),
          .micro_batch = whole_or_zero(object, "micro_batch"),
          .gradient_accumulation = whole_or_zero(object, "gradient_accumulation"),
          .tokens_per_step = whole_or_zero(object, "tokens_per_step")};
}

std::vector<double> numbers(const Json& list) {
  std::vector<double> values;
  for (const Json& value : list) values.push_back(number(value));
  return values;
}

Outcome outcome_of(const std::string& name) {
  for (const Outcome outcome : kOutcomes) {
    if (name == name_of(outcome)) return outcome;
  }
  throw Error(ErrorCode::invalid, "outcome \"" + shortened(name) + "\" is unknown");
}

TaggedBytes tagged(const Json& object) {
  TaggedBytes bytes;
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    const char* tag = name_of(static_cast<MemoryTag>(i));
    if (static_cast<MemoryTag>(i) == MemoryTag::kv_cache && !object.contains(tag)) continue;
    bytes.tag[i] = whole(object.at(tag), tag);
  }
  return bytes;
}

RunResult result_of(const Json& object, const std::string& backend) {
  RunResult run;
  run.backend = backend;
  run.predicted = is_predicting(backend);
  run.strategy = object.at("strategy").get<std::string>();
  run.outcome = outcome_of(object.at("outcome").get<std::string>());
  run.message = object.at("message").get<std::string>();
  run.ranks = static_cast<int>(whole(object.at("ranks"), "ranks"));
  run.steps = whole(object.at("steps"), "steps");
  run.loss = numbers(object.at("loss"));
  if (object.contains("step_seconds")) run.step_seconds = numbers(object["step_seconds"]);
  run.tokens_per_second = number_or_zero(object.at("tokens_per_second"));
  const Json& step = object.at("step_time_seconds");
  run.step_time = {number_or_zero(step.at("median")), number_or_zero(step.at("min")),
                   number_or_zero(step.at("max"))};
  run.mfu = number_or_zero(object.at("mfu"));
  run.peak_device = tagged(object.at("peak_bytes").at("device"));
  run.peak_host = tagged(object.at("peak_bytes").at("host"));
  run.peak_nvme = tagged(object.at("peak_bytes").at("nvme"));
  run.wire_bytes_per_step = whole(object.at("wire_bytes_per_step"), "wire_bytes_per_step");
  const Json& time = object.at("time_breakdown_seconds");
  run.time = {
      number_or_zero(time.at("compute")),       number_or_zero(time.at("exposed_communication")),
      number_or_zero(time.at("offload_stall")), number_or_zero(time.at("bubble")),
      number_or_zero(time.at("optimizer")),     number_or_none(time, "exposed_tensor"),
      number_or_none(time, "exposed_pipeline")};
  run.reserved_device = whole_or_zero(object, "reserved_bytes");
  run.device_capacity = whole_or_zero(object, "device_capacity_bytes");
  run.priced_from = text_or_empty(object, "priced_from");
  run.step_time_low = number_or_none(object, "step_time_low");
  run.step_time_high = number_or_none(object, "step_time_high");
  run.own_step_error = number_or_none(object, "own_step_error");
  run.precision = text_or_empty(object, "precision");
  run.setup = setup_of(object);
  run.first_step = whole_or_zero(object, "first_step");
  run.skipped_steps = whole_or_zero(object, "skipped_steps");
  return run;
}

// Says what is missing in words of its own.
void require_run_objects(const Json& document, const std::string& path) {
  const Json list = document.is_array() ? document : Json::array({document});
  const auto is_run = [](const Json& object) {
    return object.is_object() && object.contains("backend") && object.contains("results");
  };
  if (!list.empty() && std::all_of(list.begin(), list.end(), is_run)) return;
  throw Error(ErrorCode::invalid,
              path +
                  ": not what `zerolab run -o json` writes: an object with \"backend\" and "
                  "\"results\", or a list of them");
}

}  // namespace

std::vector<RunResult> read_run_file(const std::string& path) {
  const Json document = parse_json(read_file(path), path);
  std::vector<RunResult> runs;
  require_run_objects(document, path);
  try {
    for (const Json& object : document.is_array() ? document : Json::array({document})) {
      const auto backend = object.at("backend").get<std::string>();
      for (const Json& result : object.at("results")) runs.push_back(result_of(result, backend));
    }
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::invalid,
                path + ": not what `zerolab run -o json` writes: " + json_problem(error.what()));
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
  return runs;
}

}  // namespace zl::cli
