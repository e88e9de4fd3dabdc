#include "backends/cuda/workspaces.h"

#include "backends/cuda/availability.h"
#include "core/base/error.h"

namespace zl::cuda {
namespace {

constexpr std::int64_t kOther = std::int64_t{8} << 20;  // of each stream but compute
constexpr std::int64_t kOthers = (static_cast<std::int64_t>(kDeviceStreams) - 1) * kOther;
static_assert(kWorkspace - kOthers >= std::int64_t{32} << 20);

}  // namespace

void Workspaces::lend(std::byte* memory, std::int64_t bytes) {
  ZL_CHECK(memory == nullptr || bytes >= kWorkspace, "a lent workspace has the size asked for");
  std::byte* next = memory;
  for (std::size_t i = 0; i < kDeviceStreams; ++i) {
    const bool compute = i == static_cast<std::size_t>(StreamId::compute);
    parts_[i] = {next, memory == nullptr ? 0 : compute ? bytes - kOthers : kOther};
    if (memory != nullptr) next += parts_[i].bytes;
  }
}

}  // namespace zl::cuda
