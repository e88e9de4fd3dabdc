#include "core/model/stage.h"

#include <algorithm>
#include <utility>

namespace zl {

Stage::Stage(RankContext& context, ParameterAccess& access,
             std::vector<std::unique_ptr<ModelUnit>> units, const RecomputePlan& recompute,
             std::unique_ptr<KeptInputs> kept_inputs)
    : context_(context),
      access_(access),
      units_(std::move(units)),
      recompute_(recompute),
      away_(std::move(kept_inputs)) {
  for (const auto& unit : units_) {
    std::vector<ModelUnit*>& rest = layers_.empty() ? before_ : after_;
    (unit->can_recompute() ? layers_ : rest).push_back(unit.get());
  }
  if (!units_.empty()) loss_ = dynamic_cast<LossUnit*>(units_.back().get());
}

void Stage::forward(MicroBatch& micro) {
  micro.geometry.drop_attention = recompute_.drop_attention();
  micro.geometry.drop_activation = recompute_.drop_activation();
  micro.geometry.keeps_attention = recompute_.keeps_attention();
  for (ModelUnit* unit : before_) forward_unit(*unit, micro);
  for (const Group& group : recompute_.groups()) forward_group(group, micro);
  if (away_) away_->finish();
  for (ModelUnit* unit : after_) forward_unit(*unit, micro);
}

void Stage::forward_unit(ModelUnit& unit, MicroBatch& micro) {
  ScopeGuard scope(context_, Phase::forward, unit.number());
  access_.enter(unit.number(), Pass::forward);
  unit.forward(micro);
  access_.leave(unit.number(), Pass::forward);
}

void Stage::forward_group(const Group& group, MicroBatch& micro) {
  for (int index = group.begin; index < group.end; ++index) {
    ModelUnit& unit = layer(index);
    if (!group.recomputed) {
      forward_unit(unit, micro);
      continue;
    }
    ScopeGuard scope(context_, Phase::forward, unit.number());
    access_.enter(unit.number(), Pass::forward);
    unit.forward(micro);
    Tensor input = unit.keep_output_only(micro);
    if (index == group.begin && away_) {
      away_->put(micro.slot, index, std::move(input));
    } else if (index == group.begin) {
      unit.restore_input(micro, std::move(input));
    }
    access_.leave(unit.number(), Pass::forward);
  }
}

void Stage::forward_alone(MicroBatch& micro) {
  for (ModelUnit* unit : before_) {
    forward_unit(*unit, micro);
    micro.forget(unit->number());
  }
  for (ModelUnit* unit : layers_) {
    forward_unit(*unit, micro);
    unit->keep_output_only(micro);
    micro.forget(unit->number());
  }
  for (ModelUnit* unit : after_) forward_unit(*unit, micro);
}

void Stage::extend(MicroBatch& micro, const std::vector<std::int64_t>& rows,
                   const TensorView& logits) {
  forward_alone(micro);
  ScopeGuard scope(context_, Phase::forward, loss_->number());
  access_.enter(loss_->number(), Pass::backward);
  loss_->logits(micro, rows, logits);
  access_.leave(loss_->number(), Pass::backward);
}

void Stage::evaluate(MicroBatch& micro) {
  forward_alone(micro);
  if (loss_ == nullptr) return;
  ScopeGuard scope(context_, Phase::forward, loss_->number());
  access_.enter(loss_->number(), Pass::backward);
  loss_->evaluate(micro);
  access_.leave(loss_->number(), Pass::backward);
}

void Stage::backward_unit(ModelUnit& unit, MicroBatch& micro) {
  ScopeGuard scope(context_, Phase::backward, unit.number());
  access_.enter(unit.number(), Pass::backward);
  unit.backward(micro);
  access_.leave(unit.number(), Pass::backward);
}

void Stage::backward(MicroBatch& micro) {
  for (auto unit = after_.rbegin(); unit != after_.rend(); ++unit) backward_unit(**unit, micro);
  const auto& groups = recompute_.groups();
  for (std::size_t left = groups.size(); left-- > 0;) {
    const Group& group = groups[left];
    if (away_) bring_back(left, micro);
    if (group.recomputed) recompute_group(group, micro);
    for (int index = group.end - 1; index >= group.begin; --index) {
      backward_layer(layer(index), micro);
    }
  }
  for (auto unit = before_.rbegin(); unit != before_.rend(); ++unit) backward_unit(**unit, micro);
}

void Stage::input_gradient(MicroBatch& micro) {
  micro.splits_backward = true;
  backward(micro);
  micro.splits_backward = false;
}

void Stage::weight_gradient(MicroBatch& micro) {
  for (LinearGradient& each : micro.waiting) {
    ScopeGuard scope(context_, Phase::weight_gradient, each.unit);
    add_waiting_gradient(context_, access_, each);
  }
  micro.waiting.clear();
}

// The kept input of a group from the host, and the one before it on its way.
void Stage::bring_back(std::size_t index, MicroBatch& micro) {
  const auto& groups = recompute_.groups();
  const int begin = groups[index].begin;
  if (groups[index].recomputed) layer(begin).restore_input(micro, away_->take(micro.slot, begin));
  if (index > 0 && groups[index - 1].recomputed) away_->fetch(micro.slot, groups[index - 1].begin);
}

// A group of one is recomputed inside its backward visit (backward_layer); a longer one makes a
// forward visit of all but its last layer first.
void Stage::recompute_group(const Group& group, MicroBatch& micro) {
  for (int index = group.begin; index + 1 < group.end; ++index) {
    ModelUnit& unit = layer(index);
    ScopeGuard scope(context_, Phase::recompute, unit.number());
    access_.enter(unit.number(), Pass::forward);
    unit.recompute(micro, false);
    access_.leave(unit.number(), Pass::forward);
  }
}

void Stage::backward_layer(ModelUnit& unit, MicroBatch& micro) {
  ScopeGuard scope(context_, Phase::backward, unit.number());
  access_.enter(unit.number(), Pass::backward);
  if (unit.needs_recompute(micro)) {
    const bool all = !micro.geometry.keeps_attention;
    ScopeGuard again(context_, all ? Phase::recompute : Phase::recompute_products, unit.number());
    unit.recompute(micro, true);
  }
  unit.backward(micro);
  access_.leave(unit.number(), Pass::backward);
}

std::vector<Visit> Stage::forward_visits() const {
  std::vector<Visit> order;
  for (const auto& unit : units_) order.push_back({unit->number(), Pass::forward});
  return order;
}

std::vector<Visit> Stage::evaluation_visits() const {
  std::vector<Visit> order = forward_visits();
  if (loss_ != nullptr) order.push_back({loss_->number(), Pass::backward});
  return order;
}

std::vector<Visit> Stage::backward_visits() const {
  std::vector<Visit> order;
  const auto visit = [&](const ModelUnit& unit, Pass pass) {
    order.push_back({unit.number(), pass});
  };
  for (auto unit = after_.rbegin(); unit != after_.rend(); ++unit) visit(**unit, Pass::backward);
  const auto& groups = recompute_.groups();
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    for (int index = group->begin; group->recomputed && index + 1 < group->end; ++index) {
      visit(layer(index), Pass::forward);
    }
    for (int index = group->end - 1; index >= group->begin; --index) {
      visit(layer(index), Pass::backward);
    }
  }
  for (auto unit = before_.rbegin(); unit != before_.rend(); ++unit) visit(**unit, Pass::backward);
  return order;
}

}  // namespace zl
