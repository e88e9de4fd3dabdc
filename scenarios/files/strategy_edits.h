// What the command line says of every strategy, whatever their files say.
// Ownership: values. Threads: pure function.
#pragma once

#include <optional>
#include <string>

namespace zl {

struct StrategyEdits {
  std::optional<std::string> recompute;  // as x-zerolab.recompute
  std::optional<std::string> offload;    // none, cpu, nvme: the optimizer; of stage 3 also weights
  std::optional<double> lr;

  bool any() const { return recompute || offload || lr; }
};

// The text of a strategy (a DeepSpeed file) with the edits in it, called "NAME+offload-cpu" and so
// on after what they change; the text itself without edits. `source`: what names it otherwise.
// Throws Error{invalid} for malformed JSON and for an offload that is none of the three.
std::string edited_strategy(const std::string& text, const std::string& source,
                            const StrategyEdits& edits);

}  // namespace zl
