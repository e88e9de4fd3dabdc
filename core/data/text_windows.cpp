#include "core/data/text_windows.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace zl {
namespace {

constexpr std::int32_t kDoesNotCount = -1;  // see Batch

// The first one reaches target `length`, each further one `stride` more.
std::int64_t windows_of(std::int64_t last_token, std::int64_t length, std::int64_t stride) {
  const std::int64_t left = std::max<std::int64_t>(0, last_token - length);
  return 1 + (left + stride - 1) / stride;
}

}  // namespace

TextWindows::TextWindows(std::shared_ptr<const TokenStore> store, const WindowPlan& plan)
    : store_(std::move(store)),
      length_(plan.length),
      stride_(plan.stride == 0 ? plan.length : plan.stride) {
  ZL_CHECK(length_ > 0 && stride_ > 0 && plan.most >= 0, "windows have a length and a stride");
  ZL_CHECK(store_->count() > 1, "one token is predicted of another");
  windows_ = windows_of(store_->count() - 1, length_, stride_);
  chosen_ = plan.most == 0 ? windows_ : std::min(plan.most, windows_);
}

Batch TextWindows::batch(const BatchRequest& request) const {
  ZL_CHECK(request.sequence_length == length_, "windows are as long as the sequences");
  const auto ids = static_cast<std::size_t>(request.micro_batch * length_);
  Batch batch{std::vector<std::int32_t>(ids), std::vector<std::int32_t>(ids, kDoesNotCount)};
  for (std::int64_t row = 0; row < request.micro_batch; ++row) {
    const std::int64_t sample = request.first_sample() + row;
    if (sample >= chosen_) break;
    read_window(sample * windows_ / chosen_, batch.tokens.data() + row * length_,
                batch.targets.data() + row * length_);
  }
  return batch;
}

void TextWindows::read_window(std::int64_t window, std::int32_t* inputs,
                              std::int32_t* targets) const {
  const std::int64_t begin = window * stride_;
  const std::int64_t end = std::min(begin + length_ + 1, store_->count());
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(end - begin));
  store_->read(begin, tokens);
  const std::int64_t seen = window == 0 ? 0 : length_ - stride_;  // targets of the window before
  std::copy_n(tokens.begin(), std::min(length_, end - begin), inputs);
  for (std::int64_t i = std::max<std::int64_t>(0, seen); i + 1 < end - begin; ++i) {
    targets[i] = tokens[static_cast<std::size_t>(i + 1)];
  }
}

}  // namespace zl
