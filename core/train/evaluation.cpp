#include "core/train/evaluation.h"

#include <cstdio>
#include <utility>

namespace zl {

Evaluation evaluate_all(Engine& engine, const EvaluationSource& source,
                        std::int64_t sequence_length) {
  BatchRequest request{.rank = engine.context().rank(Axis::data),
                       .ranks = engine.context().ranks(Axis::data),
                       .micro_batch = engine.strategy().micro_batch,
                       .sequence_length = sequence_length};
  const std::int64_t at_once = request.ranks * request.micro_batch;
  Evaluation sum;
  for (; request.micro * at_once < source.samples(); ++request.micro) {
    const Evaluation part = engine.evaluate(source.batch(request));
    sum.nll += part.nll;
    sum.rows += part.rows;
  }
  return sum;
}

// Digits enough for the same double.
std::string Judge::words_of(const EvaluationPoint& point) const {
  char words[128];
  std::snprintf(words, sizeof words, "loss %.17g of %lld tokens after step %lld", point.loss,
                static_cast<long long>(point.tokens), static_cast<long long>(point.step));
  return words + (", " + std::to_string(plan_.source->samples()) + " samples of " + plan_.data);
}

std::string Judge::best() const {
  if (plan_.source == nullptr) return kept_;
  const EvaluationPoint* best = best_evaluation(result_);
  return best == nullptr ? "" : words_of(*best);
}

void Judge::resume(const std::string& best) {
  kept_ = best;
  if (plan_.source == nullptr) return;
  double loss = 0;
  long long tokens = 0, step = 0;
  const int found =
      std::sscanf(best.c_str(), "loss %lf of %lld tokens after step %lld", &loss, &tokens, &step);
  const EvaluationPoint point{step, loss, tokens};
  if (found == 3 && words_of(point) == best) result_.best_before = point;
}

void Judge::begin() {
  if (plan_.every > 0 && result_.first_step == 0) judge(0, false);
}

void Judge::after_step(std::int64_t step, bool last) {
  if (last || (plan_.every > 0 && step % plan_.every == 0)) judge(step, last);
}

void Judge::judge(std::int64_t step, bool last) {
  if (plan_.source == nullptr) return;
  Trace& trace = engine_.context().trace();
  Trace training = std::exchange(trace, Trace());
  const Evaluation sum = evaluate_all(engine_, *plan_.source, length_);
  result_.evaluations.push_back({step, sum.mean(), sum.rows});
  const EvaluationPoint& point = result_.evaluations.back();
  const EvaluationPoint* best = best_evaluation(result_);
  if (plan_.on_judged) plan_.on_judged(engine_, point, best == nullptr || best == &point);
  const bool is_older = result_.best_before && best == &*result_.best_before;
  if (last && is_older && plan_.on_none_better) plan_.on_none_better(engine_, *best);
  aside_ = std::exchange(trace, std::move(training));
}

}  // namespace zl
