#include "core/optim/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "core/base/error.h"

namespace zl {
namespace {

template <class T>
void require(bool good, const char* key, T value, const char* accepted) {
  if (good) return;
  std::ostringstream message;
  message << "fp16." << key << ": " << value << " is not " << accepted;
  throw Error(ErrorCode::invalid, message.str());
}

void check(const LossScalerConfig& config) {
  require(std::isfinite(config.static_scale) && config.static_scale >= 0, "loss_scale",
          config.static_scale, "a finite number of at least 0 (0: dynamic)");
  require(config.initial_scale_power >= 0 && config.initial_scale_power <= 126,
          "initial_scale_power", config.initial_scale_power, "in 0..126");
  require(config.window > 0, "loss_scale_window", config.window, "positive");
  require(config.hysteresis >= 0, "hysteresis", config.hysteresis, "at least 0");
  require(std::isfinite(config.min_scale) && config.min_scale >= 0, "min_loss_scale",
          config.min_scale, "at least 0");
}

}  // namespace

LossScaler::LossScaler(const LossScalerConfig& config, bool dynamic)
    : config_(config), dynamic_(dynamic && config.static_scale == 0.0) {
  check(config);
  state_.hysteresis_left = config.hysteresis;
  if (dynamic_) {
    state_.scale = std::ldexp(1.0, static_cast<int>(config.initial_scale_power));
  } else {
    state_.scale = config.static_scale > 0.0 ? config.static_scale : 1.0;
  }
}

void LossScaler::update(bool overflow) {
  if (!dynamic_) return;
  if (overflow) {
    if (state_.hysteresis_left == 1) {
      shrink();
    } else {
      --state_.hysteresis_left;
    }
    state_.last_overflow = state_.iteration;
  } else {
    if (config_.consecutive_hysteresis) state_.hysteresis_left = config_.hysteresis;
    const std::int64_t stable = state_.iteration - state_.last_overflow - 1;
    if (stable > 0 && stable % config_.window == 0) {
      state_.hysteresis_left = config_.hysteresis;
      state_.scale *= 2.0;
    }
  }
  ++state_.iteration;
}

void LossScaler::shrink() {
  if (state_.scale <= config_.min_scale) {
    std::ostringstream message;
    message << "loss_scale: already at minimum (fp16.min_loss_scale = " << config_.min_scale
            << ") at step " << state_.iteration
            << " and the gradients still overflow; lower the learning rate, lower "
               "fp16.min_loss_scale, or train in bf16";
    throw Error(ErrorCode::failed, message.str());
  }
  state_.scale = std::max(state_.scale / 2.0, config_.min_scale);
}

}  // namespace zl
