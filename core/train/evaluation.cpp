#include "core/train/evaluation.h"

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

void Judge::begin() {
  if (plan_.every > 0 && result_.first_step == 0) judge(0);
}

void Judge::after_step(std::int64_t step, bool last) {
  if (last || (plan_.every > 0 && step % plan_.every == 0)) judge(step);
}

void Judge::judge(std::int64_t step) {
  if (plan_.source == nullptr) return;
  Trace& trace = engine_.context().trace();
  Trace training = std::exchange(trace, Trace());
  const Evaluation sum = evaluate_all(engine_, *plan_.source, length_);
  result_.evaluations.push_back({step, sum.mean(), sum.rows});
  const EvaluationPoint& point = result_.evaluations.back();
  const EvaluationPoint* best = best_evaluation(result_);
  if (plan_.on_judged) plan_.on_judged(engine_, point, best == nullptr || best == &point);
  aside_ = std::exchange(trace, std::move(training));
}

}  // namespace zl
