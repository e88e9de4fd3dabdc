#include "scenarios/run/speaker.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "scenarios/files/attention_layout.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/model_folder.h"
#include "scenarios/files/resolve.h"
#include "scenarios/weights/model_weights.h"
#include "simulator/json/reading.h"

namespace zl {

Speaker load_speaker(ScenarioOverrides overrides) {
  overrides.strategies = {"zero-0"};
  overrides.ranks = 1;
  Speaker speaker;
  if (overrides.model && is_checkpoint(*overrides.model)) {
    speaker.checkpoint = read_checkpointed_run(*overrides.model);
    speaker.sparse = speaker.checkpoint->is.strategy.sparse_attention;
    const Json document = {{"schema", 1}, {"model", model_to_json(speaker.checkpoint->is.model)}};
    overrides.model.reset();
    speaker.scenario = resolve_scenario(document, speaker.checkpoint->is.model.name, "", overrides);
  } else {
    speaker.scenario = load_scenario("", overrides);
    speaker.sparse = attention_layout(speaker.scenario.run.weights, speaker.scenario.model);
  }
  const std::string& path = speaker.scenario.run.tokenizer;
  speaker.tokenizer = load_tokenizer(path == "byte" ? "" : path);
  return speaker;
}

std::shared_ptr<const WeightSource> open_weights(const Speaker& speaker) {
  if (speaker.checkpoint) return checkpointed_weights(*speaker.checkpoint);
  const std::string& folder = speaker.scenario.run.weights;
  if (folder.empty()) return nullptr;
  return std::make_shared<const ModelWeights>(folder, speaker.scenario.model);
}

std::vector<std::int32_t> encode_prompt(const Speaker& speaker, const std::string& prompt) {
  std::vector<std::int32_t> ids = speaker.tokenizer->encode_input({.text = prompt}).ids;
  const ModelConfig& model = speaker.scenario.model;
  for (const std::int32_t token : ids) {
    if (token < model.vocab) continue;
    throw Error(ErrorCode::invalid, "--tokenizer: token " + std::to_string(token) +
                                        " is beyond the vocabulary of " +
                                        std::to_string(model.vocab) + " of " + model.name +
                                        "; use the model's own tokenizer");
  }
  if (ids.empty()) throw Error(ErrorCode::usage, "--prompt: it has no token");
  return ids;
}

std::vector<std::int32_t> ends_of(const Speaker& speaker) {
  const std::string path = path_in(speaker.scenario.run.weights, "generation_config.json");
  std::vector<std::int32_t> ends;
  if (!speaker.scenario.run.weights.empty() && is_file(path)) {
    const Json config = parse_json(read_file(path), path);
    const auto end = config.is_object() ? config.find("eos_token_id") : config.end();
    if (config.is_object() && end != config.end() && !end->is_null()) {
      const Json list = end->is_array() ? *end : Json::array({*end});
      for (const Json& id : list) {
        ends.push_back(static_cast<std::int32_t>(integer_at(id, path + ": eos_token_id")));
      }
    }
  }
  if (ends.empty() && speaker.tokenizer != nullptr) {
    if (const auto end = speaker.tokenizer->special_ids().eos) ends.push_back(*end);
  }
  return ends;
}

}  // namespace zl
