#include "scenarios/cli/run_file.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "results/stored_backend.h"
#include "simulator/json/reading.h"

namespace zl::cli {
namespace {

// Null stands for a number that JSON cannot write.
double number(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

double number_or_zero(const Json& value) { return value.is_null() ? 0 : value.get<double>(); }

std::vector<double> numbers(const Json& list) {
  std::vector<double> values;
  for (const Json& value : list) values.push_back(number(value));
  return values;
}

Outcome outcome_of(const std::string& name) {
  for (const Outcome outcome :
       {Outcome::ok, Outcome::out_of_memory, Outcome::infeasible, Outcome::failed}) {
    if (name == name_of(outcome)) return outcome;
  }
  throw Error(ErrorCode::invalid, "outcome \"" + name + "\" is unknown");
}

TaggedBytes tagged(const Json& object) {
  TaggedBytes bytes;
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    bytes.tag[i] = object.at(name_of(static_cast<MemoryTag>(i))).get<std::int64_t>();
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
  run.ranks = object.at("ranks").get<int>();
  run.steps = object.at("steps").get<std::int64_t>();
  run.loss = numbers(object.at("loss"));
  run.tokens_per_second = number(object.at("tokens_per_second"));
  const Json& step = object.at("step_time_seconds");
  run.step_time = {number(step.at("median")), number(step.at("min")), number(step.at("max"))};
  run.mfu = number_or_zero(object.at("mfu"));
  run.peak_device = tagged(object.at("peak_bytes").at("device"));
  run.peak_host = tagged(object.at("peak_bytes").at("host"));
  run.peak_nvme = tagged(object.at("peak_bytes").at("nvme"));
  run.wire_bytes_per_step = object.at("wire_bytes_per_step").get<std::int64_t>();
  const Json& time = object.at("time_breakdown_seconds");
  run.time = {number(time.at("compute")), number(time.at("exposed_communication")),
              number(time.at("offload_stall")), number(time.at("bubble")),
              number(time.at("optimizer"))};
  run.reserved_device = object.value("reserved_bytes", std::int64_t{0});
  run.first_step = object.value("first_step", std::int64_t{0});
  run.skipped_steps = object.value("skipped_steps", std::int64_t{0});
  return run;
}

}  // namespace

std::vector<RunResult> read_run_file(const std::string& path) {
  const Json document = parse_json(read_file(path), path);
  std::vector<RunResult> runs;
  try {
    for (const Json& object : document.is_array() ? document : Json::array({document})) {
      const auto backend = object.at("backend").get<std::string>();
      for (const Json& result : object.at("results")) runs.push_back(result_of(result, backend));
    }
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::invalid,
                path + ": not what `zerolab run -o json` writes: " + error.what());
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
  return runs;
}

}  // namespace zl::cli
