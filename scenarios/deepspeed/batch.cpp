#include "scenarios/deepspeed/batch.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/nearest.h"

namespace zl {
namespace {

constexpr auto kTotal = "train_batch_size";
constexpr auto kMicro = "train_micro_batch_size_per_gpu";
constexpr auto kAccumulation = "gradient_accumulation_steps";

using Size = std::optional<std::int64_t>;

struct Triangle {
  Size total, micro, accumulation;
};

// What DeepSpeed derives from what is given (runtime/config.py).
void derive(Triangle& t, std::int64_t ranks) {
  if (t.total && t.micro) {
    if (!t.accumulation) t.accumulation = *t.total / *t.micro / ranks;
  } else if (t.total && t.accumulation) {
    t.micro = *t.total / ranks / *t.accumulation;
  } else if (t.total) {
    t.accumulation = 1;
    t.micro = *t.total / ranks;
  } else if (t.micro) {
    if (!t.accumulation) t.accumulation = 1;
    t.total = *t.micro * *t.accumulation * ranks;
  }
}

std::string solution(std::int64_t micro, std::int64_t accumulation, std::int64_t ranks) {
  return std::to_string(micro * accumulation * ranks) + " (micro batch " + std::to_string(micro) +
         ", accumulation " + std::to_string(accumulation) + ")";
}

std::string mismatch(const Triangle& t, std::int64_t ranks) {
  return std::to_string(*t.total) + " is not micro batch " + std::to_string(*t.micro) +
         " * accumulation " + std::to_string(*t.accumulation) + " * ranks " +
         std::to_string(ranks) + " = " + std::to_string(*t.micro * *t.accumulation * ranks);
}

// The valid totals next to the wished one, with what was given beside it kept.
std::string nearest_solutions(const Triangle& given, std::int64_t ranks) {
  const bool keep_micro = given.micro.has_value();
  const std::int64_t kept = keep_micro ? *given.micro : given.accumulation.value_or(1);
  const std::int64_t unit = kept * ranks;
  const std::int64_t below = *given.total / unit;
  std::vector<std::string> texts;
  if (given.micro && given.accumulation) {
    texts.push_back(solution(*given.micro, *given.accumulation, ranks));
  }
  for (std::int64_t other = below; other <= below + 1; ++other) {
    if (other < 1) continue;
    const std::string text =
        keep_micro ? solution(kept, other, ranks) : solution(other, kept, ranks);
    if (texts.empty() || texts.front() != text) texts.push_back(text);
    if (other * unit == *given.total) break;
  }
  return join(texts, " or ");
}

// The ranks for which all three sizes are right; 0: none, or not all three are given.
std::int64_t implied_ranks(const Triangle& t) {
  if (!t.total || !t.micro || !t.accumulation) return 0;
  const std::int64_t of_a_rank = *t.micro * *t.accumulation;
  return *t.total % of_a_rank == 0 ? *t.total / of_a_rank : 0;
}

// What the run gives where the file gives no batch.
void note_missing(Keys& keys) {
  const std::string why = "the file gives no batch; 1 unless the run gives one (--micro-batch)";
  keys.effects().record(kMicro, 1, EffectStatus::defaulted, why);
  keys.effects().warn(std::string(kMicro) + ": " + why);
}

}  // namespace

Batch build_batch(Keys& keys, const ImportContext& context) {
  Triangle wished;
  bool any_auto = false;
  for (const auto& [path, size] : {std::pair{kTotal, &wished.total},
                                   {kMicro, &wished.micro},
                                   {kAccumulation, &wished.accumulation}}) {
    const GivenKey* key = keys.given(path);
    if (keys.is_set(path)) *size = whole_number(*key->value);
    any_auto = any_auto || (key != nullptr && key->is_auto);
  }
  // The command line's batch wins, the total follows from it; a scenario's serves files that state
  // none.
  const bool stated = wished.total || wished.micro || wished.accumulation;
  const bool overridden = (context.micro_batch > 0 || context.gradient_accumulation > 0) &&
                          !(context.batch_is_default && stated);
  Triangle solved = wished;
  if (overridden) {
    if (context.micro_batch > 0) solved.micro = context.micro_batch;
    if (context.gradient_accumulation > 0) solved.accumulation = context.gradient_accumulation;
    if (solved.micro) solved.total.reset();
  }
  const std::int64_t implied = implied_ranks(wished);
  const std::int64_t ranks = context.infer_ranks && implied > 0 ? implied : context.ranks;
  const bool missing = !solved.total && !solved.micro;
  if (missing) solved.micro = 1;
  const Triangle asked = solved;
  derive(solved, ranks);
  const std::int64_t product = *solved.micro * *solved.accumulation * ranks;
  if (*solved.micro < 1 || *solved.accumulation < 1 || product != *solved.total) {
    keys.effects().reject(
        kTotal,
        mismatch(solved, ranks) + ". Nearest valid: " + nearest_solutions(asked, ranks) +
            (implied > 0 ? "; the file is one for " + std::to_string(implied) + " ranks" : ""));
    return {};
  }
  // What follows from the total has the limit of what is written.
  for (const auto& [path, value] :
       {std::pair{kMicro, *solved.micro}, {kAccumulation, *solved.accumulation}}) {
    const double most = find_key(path)->maximum;
    if (static_cast<double>(value) <= most) continue;
    keys.effects().reject(
        kTotal, std::to_string(*solved.total) + " makes " + path + " " + std::to_string(value) +
                    " with " + std::to_string(ranks) + " ranks, above " +
                    std::to_string(static_cast<std::int64_t>(most)) + "; lower it");
    return {};
  }
  const std::string with = "from " + std::to_string(ranks) + " ranks";
  const std::string for_ranks =
      ranks == context.ranks ? "" : "as written, a batch of " + std::to_string(ranks) + " ranks";
  for (const auto& [path, wish, value] :
       {std::tuple{kTotal, wished.total, *solved.total},
        {kMicro, wished.micro, *solved.micro},
        {kAccumulation, wished.accumulation, *solved.accumulation}}) {
    const bool kept = wish == value;
    keys.effects().record(path, value, kept ? EffectStatus::honoured : EffectStatus::defaulted,
                          kept   ? (std::string_view(path) == kTotal ? for_ranks : "")
                          : wish ? "the run's batch wins, " + with
                                 : "derived, " + with);
  }
  const GivenKey* elastic = keys.given("elasticity.enabled");
  const bool is_elastic = elastic != nullptr && *elastic->value == true;
  if (missing && !any_auto && !is_elastic) note_missing(keys);
  return {*solved.micro, *solved.accumulation, ranks};
}

}  // namespace zl
