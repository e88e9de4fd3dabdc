#include "scenarios/run/weights_file.h"

#include "core/checkpoint/safetensors.h"

namespace zl {

void WeightsFile::collect(Engine& engine) {
  const bool keeps = engine.partition().rank() == 0;
  const int count = static_cast<int>(engine.parameters().specs.size());
  for (int parameter = 0; parameter < count; ++parameter) {
    std::vector<float> values = engine.gather_parameter(parameter);
    if (keeps) values_.push_back(std::move(values));
  }
  if (!keeps) return;
  specs_ = engine.parameters().specs;
  steps_ = engine.steps();
}

void WeightsFile::write(const std::string& path) const {
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const Shape& shape = specs_[i].shape;
    NamedTensor tensor{specs_[i].name, DType::f32, {}, std::as_bytes(std::span(values_[i]))};
    for (int axis = 0; axis < shape.rank(); ++axis) tensor.shape.push_back(shape[axis]);
    tensors.push_back(std::move(tensor));
  }
  write_safetensors(
      path, tensors,
      {{"model", model_}, {"strategy", strategy_}, {"steps", std::to_string(steps_)}});
}

}  // namespace zl
