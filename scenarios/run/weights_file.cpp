#include "scenarios/run/weights_file.h"

#include "core/checkpoint/safetensors.h"

namespace zl {

void WeightsFile::collect(Engine& engine) {
  const bool keeps = engine.context().rank() == 0;  // the others' threads share this
  if (keeps) {
    specs_.clear();
    values_.clear();
  }
  engine.gather_model([this](const ParameterSpec& spec, std::vector<float> values) {
    specs_.push_back(spec);
    values_.push_back(std::move(values));
  });
  if (keeps) steps_ = engine.steps();
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
