#include "scenarios/deepspeed/import.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "scenarios/deepspeed/batch.h"
#include "scenarios/deepspeed/checks.h"
#include "scenarios/deepspeed/offload.h"
#include "scenarios/deepspeed/optimizer.h"
#include "scenarios/deepspeed/parallel.h"
#include "scenarios/deepspeed/precision.h"
#include "scenarios/deepspeed/recompute.h"
#include "scenarios/deepspeed/release.h"
#include "scenarios/deepspeed/remaining.h"
#include "scenarios/deepspeed/schedule.h"
#include "scenarios/deepspeed/sparse_attention.h"
#include "scenarios/deepspeed/zero.h"

namespace zl {

namespace {

// It becomes the name of a folder of checkpoints. An error of the import, not a rejected key:
// nothing may be shown under such a name.
std::string name_of_strategy(Keys& keys, const ImportContext& context,
                             std::string_view source_name) {
  const bool given = keys.is_set("x-zerolab.name");
  std::string name = given                  ? keys.text("x-zerolab.name")
                     : context.name.empty() ? name_of_file(source_name)
                                            : context.name;
  require_name(name, given ? "strategy.x-zerolab.name"
                           : "strategy: the file's name, without x-zerolab.name");
  return name;
}

// Sections in an order in which each finds what it depends on.
ImportedStrategy build(const Json& document, ImportContext context, std::string_view source_name) {
  const std::vector<GivenKey> given = read_deepspeed_keys(document);
  Effects effects(given);
  Keys keys(effects);
  ImportedStrategy out;
  Strategy& strategy = out.strategy;
  strategy.name = name_of_strategy(keys, context, source_name);
  const Release release = read_release(keys);
  strategy.pipeline = build_pipeline(keys);
  strategy.tensor = build_tensor(keys);
  const std::int64_t of_model = strategy.pipeline.ranks * strategy.tensor.ranks;
  const std::int64_t shard = keys.integer("zero_optimization.mics_shard_size");
  const std::int64_t part = keys.integer("zero_optimization.zero_hpz_partition_size");
  const std::int64_t least = of_model * std::max<std::int64_t>({1, shard, part});
  if (context.infer_ranks && context.ranks % least != 0) context.ranks = least;
  context.ranks = data_parallel_ranks(keys, strategy, context.ranks);
  const Batch batch = build_batch(keys, context);
  out.ranks = batch.ranks * of_model;
  strategy.micro_batch = batch.micro;
  strategy.gradient_accumulation = batch.accumulation;
  check_schedule(keys, strategy.pipeline, batch.accumulation);
  strategy.zero = build_zero(keys, context);
  strategy.zero.replicas = build_replicas(keys, batch.ranks);
  note_others(keys, strategy, context.model);
  build_precision(keys, context, strategy);
  build_gradients(keys, context, release, strategy);
  strategy.recompute = build_recompute(keys);
  check_recompute(keys, strategy);
  strategy.sparse_attention =
      build_sparse_attention(keys, document, context.model != nullptr && !context.model->encoder);
  strategy.optimizer = build_optimizer(keys, context, release);
  check_onebit(keys, strategy);
  check_tensor_optimizer(keys, strategy);
  check_replicas(keys, strategy);
  check_secondary(keys, strategy, batch.ranks);
  strategy.offload = build_offload(keys, strategy);
  check_offload_keys(keys, strategy);
  strategy.schedule = build_schedule(keys, context, release, strategy.optimizer.lr);
  build_checks(keys, strategy);
  finish_remaining(keys);
  effects.move_to(out);
  return out;
}

}  // namespace

ImportedStrategy inspect_deepspeed(std::string_view json_text, std::string_view source_name,
                                   const ImportContext& context) {
  const Json document = parse_json(json_text, source_name);
  if (!document.is_object()) {
    throw Error(ErrorCode::invalid,
                std::string(source_name) + ": a strategy is a JSON object {...}, this is not");
  }
  return build(document, context, source_name);
}

ImportedStrategy import_deepspeed(std::string_view json_text, std::string_view source_name,
                                  const ImportContext& context) {
  ImportedStrategy imported = inspect_deepspeed(json_text, source_name, context);
  std::vector<std::string>& rejections = imported.rejections;
  if (!rejections.empty()) {
    constexpr std::size_t kMost = 20;
    const std::size_t more = rejections.size() - std::min(rejections.size(), kMost);
    rejections.resize(rejections.size() - more);
    if (more > 0) rejections.push_back("... and " + std::to_string(more) + " more");
    throw Error(ErrorCode::invalid, join(rejections, "\n") + " (" + std::string(source_name) + ")");
  }
  return imported;
}

void require_runnable(const ImportedStrategy& imported) {
  if (imported.refusals.empty()) return;
  throw Error(ErrorCode::invalid, join(imported.refusals, "\n") + " (" + imported.strategy.name +
                                      "); `zerolab show strategy` lists every key");
}

}  // namespace zl
