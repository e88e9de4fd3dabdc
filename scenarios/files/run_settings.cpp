#include "scenarios/files/run_settings.h"

#include <nlohmann/json.hpp>

#include "core/base/bytes.h"
#include "core/base/error.h"

namespace zl {
namespace {

constexpr std::int64_t kMaxRanks = 1'000'000;
constexpr std::int64_t kMaxBatch = 1'000'000;
constexpr std::int64_t kMaxSteps = 1'000'000;  // a result holds the time of each
constexpr std::int64_t kMaxSequence = 1 << 24;

std::int64_t bounded(const Json& value, const std::string& where, std::int64_t minimum,
                     std::int64_t maximum) {
  const std::int64_t number = integer_at(value, where);
  if (number < minimum || number > maximum) {
    throw Error(ErrorCode::invalid, where + ": " + std::to_string(number) + " is not in " +
                                        std::to_string(minimum) + ".." + std::to_string(maximum));
  }
  return number;
}

std::int64_t read_bytes(const Json& value, const std::string& where) {
  try {
    return value.is_string() ? parse_bytes(value.get<std::string>())
                             : bounded(value, where, 0, INT64_MAX);
  } catch (const Error& error) {
    const std::string message = error.what();
    throw Error(error.code(), message.starts_with(where) ? message : where + ": " + message);
  }
}

// 0 means no limit.
double read_bandwidth(const Json& value, const std::string& where) {
  if (value.is_number() && value.get<double>() >= 0) return value.get<double>();
  try {
    return parse_bandwidth(value.is_string() ? value.get<std::string>() : value.dump());
  } catch (const Error& error) {
    throw Error(error.code(), where + ": " + error.what());
  }
}

DType read_precision(const Json& value) {
  const std::string text = text_at(value, "run.precision");
  try {
    return parse_dtype(text);
  } catch (const Error&) {
    throw Error(ErrorCode::invalid,
                "run.precision: \"" + text + "\" is not one of fp32, bf16, fp16");
  }
}

}  // namespace

RunSettings read_run_settings(const Json& object) {
  check_keys(object, "run",
             {"ranks", "steps", "seed", "sequence_length", "data", "tokenizer", "device_memory",
              "host_memory", "nvme_path", "deterministic", "precision", "micro_batch",
              "gradient_accumulation", "link_bandwidth", "communicator", "stack"});
  RunSettings run;
  const auto whole = [&object](const char* key, std::int64_t minimum, std::int64_t maximum,
                               auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    if (!object.contains(key)) return;
    member = static_cast<Member>(bounded(object[key], child_path("run", key), minimum, maximum));
  };
  whole("ranks", 1, kMaxRanks, run.ranks);
  whole("steps", 1, kMaxSteps, run.steps);
  whole("seed", 0, INT64_MAX, run.seed);
  whole("sequence_length", 1, kMaxSequence, run.sequence_length);
  whole("micro_batch", 1, kMaxBatch, run.micro_batch);
  whole("gradient_accumulation", 1, kMaxBatch, run.gradient_accumulation);
  if (object.contains("data")) run.data = text_at(object["data"], "run.data");
  if (object.contains("tokenizer")) run.tokenizer = text_at(object["tokenizer"], "run.tokenizer");
  if (object.contains("device_memory")) {
    run.device_memory = read_bytes(object["device_memory"], "run.device_memory");
  }
  if (object.contains("host_memory")) {
    run.host_memory = read_bytes(object["host_memory"], "run.host_memory");
  }
  if (object.contains("nvme_path")) run.nvme_path = text_at(object["nvme_path"], "run.nvme_path");
  if (object.contains("link_bandwidth")) {
    run.link_bandwidth = read_bandwidth(object["link_bandwidth"], "run.link_bandwidth");
  }
  if (object.contains("deterministic")) {
    run.deterministic = boolean_at(object["deterministic"], "run.deterministic");
  }
  if (object.contains("communicator")) {
    run.communicator = text_at(object["communicator"], "run.communicator");
    if (run.communicator != "threads" && run.communicator != "mpi") {
      throw Error(ErrorCode::invalid,
                  "run.communicator: \"" + run.communicator + "\" is not one of threads, mpi");
    }
  }
  if (object.contains("stack")) run.stack = text_at(object["stack"], "run.stack");
  if (object.contains("precision")) run.precision = read_precision(object["precision"]);
  return run;
}

void check_sequence_length(const RunSettings& run, const ModelConfig& model) {
  const std::string text = "run.sequence_length: " + std::to_string(run.sequence_length);
  if (model.position == PositionKind::learned && run.sequence_length > model.max_sequence) {
    throw Error(ErrorCode::invalid, text + " is above the " + std::to_string(model.max_sequence) +
                                        " learned positions of " + model.name +
                                        "; shorten it, or raise model.max_sequence");
  }
  if (model.sliding_window > 0 && run.sequence_length > model.sliding_window) {
    throw Error(ErrorCode::invalid, text + " is above model.sliding_window " +
                                        std::to_string(model.sliding_window) +
                                        "; attention here is full, so at most the window");
  }
}

Json run_settings_to_json(const RunSettings& run) {
  Json out = {{"ranks", run.ranks},
              {"steps", run.steps},
              {"seed", run.seed},
              {"sequence_length", run.sequence_length},
              {"data", run.data},
              {"tokenizer", run.tokenizer},
              {"device_memory", run.device_memory}};
  // Only where it is said: scenarios of before keep their hash.
  if (run.host_memory > 0) out["host_memory"] = run.host_memory;
  if (run.link_bandwidth > 0) out["link_bandwidth"] = run.link_bandwidth;
  if (run.communicator != "threads") out["communicator"] = run.communicator;
  if (!run.stack.empty()) out["stack"] = run.stack;
  if (!run.deterministic) out["deterministic"] = false;
  return out;
}

}  // namespace zl
