// What the events of a recording are called by people: "mlp up, block 22" in place of
// "gemm [8192,14336,4096]". The product is told by its shape, the phase and the model.
// Ownership: values. Threads: immutable once made.
#pragma once

#include <QString>
#include <vector>

#include "core/model/model_config.h"
#include "core/trace/trace.h"

namespace zl::gui {

class OpNames {
 public:
  // `rows`: tokens of a micro-batch, which tells the gradient of a weight from that of an input.
  OpNames(const Trace& trace, const ModelConfig& model, std::int64_t rows);

  const QString& operation(std::int32_t event) const { return names_[operation_[at(event)]]; }
  const QString& layer(std::int32_t event) const { return names_[layer_[at(event)]]; }
  QString whole(std::int32_t event) const;  // both

 private:
  static std::size_t at(std::int32_t event) { return static_cast<std::size_t>(event); }

  std::vector<QString> names_;                    // each once
  std::vector<std::uint32_t> operation_, layer_;  // of each event, into names_
};

}  // namespace zl::gui
