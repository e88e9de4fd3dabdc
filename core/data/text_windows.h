// Windows of a text that together predict its tokens, each once.
// Ownership: shares the tokens. Threads: immutable.
#pragma once

#include <memory>

#include "core/data/data_source.h"
#include "core/data/token_store.h"

namespace zl {

struct WindowPlan {
  std::int64_t length = 0;  // inputs of a window
  // From one window's begin to the next one's; 0: `length`. A smaller one gives the tokens that a
  // window counts more to look back at: all but the first window count their last `stride` targets.
  std::int64_t stride = 0;
  std::int64_t most = 0;  // windows, evenly spread over the text; 0: all
};

// Window w has inputs [w stride, w stride + length) and as targets the tokens after each; those
// that an earlier window counted, and what lies behind the text, do not count. A text of n tokens
// has n - 1 that count. These are the windows of length + 1 tokens of Hugging Face's recipe for the
// perplexity of models of fixed length.
class TextWindows final : public EvaluationSource {
 public:
  TextWindows(std::shared_ptr<const TokenStore> store, const WindowPlan& plan);

  std::int64_t samples() const override { return chosen_; }
  // request.sequence_length is the plan's length.
  Batch batch(const BatchRequest& request) const override;

 private:
  void read_window(std::int64_t window, std::int32_t* inputs, std::int32_t* targets) const;

  std::shared_ptr<const TokenStore> store_;
  std::int64_t length_, stride_;
  std::int64_t windows_, chosen_;
};

}  // namespace zl
