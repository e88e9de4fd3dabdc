// What the command line says of every strategy, whatever their files say.
// Ownership: values. Threads: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zl {

struct StrategyEdits {
  std::optional<std::string> recompute;  // as x-zerolab.recompute
  std::optional<std::string> offload;    // none, cpu, nvme: the optimizer; of stage 3 also weights
  std::optional<double> lr;
  std::optional<double> lr_growth;     // the factor from one step's rate to the next, from lr on
  std::optional<std::int64_t> warmup;  // steps in which the learning rate rises
  // As x-zerolab.parallel. Virtual stages without a schedule are interleaved.
  std::optional<std::int64_t> tensor, replicate, pipeline, virtual_stages;
  std::optional<bool> sequence_parallel, tensor_overlap;
  std::optional<std::string> schedule;
  std::string layers_per_stage;  // a list, "1,2,1", or a way to split; empty: as the file says

  bool cuts() const {
    return tensor || sequence_parallel || tensor_overlap || replicate || pipeline ||
           virtual_stages || schedule || !layers_per_stage.empty();
  }
  bool any() const { return recompute || offload || lr || lr_growth || warmup || cuts(); }
};

// The text of a strategy (a DeepSpeed file) with the edits in it, called "NAME+offload-cpu" and so
// on after what they change; the text itself without edits. `source`: what names it otherwise.
// Throws Error{invalid} for malformed JSON, for an offload that is none of the three, and for a
// warm-up of a schedule that has none.
std::string edited_strategy(const std::string& text, const std::string& source,
                            const StrategyEdits& edits);

}  // namespace zl
