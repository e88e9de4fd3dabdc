#include "core/model/micro_batch.h"

#include "core/base/random_streams.h"

namespace zl {

DropoutSpec dropout_spec(double p, const BatchGeometry& batch, int unit, DropoutSite site,
                         std::int64_t elements_per_sample) {
  DropoutSpec spec;
  spec.p = batch.train ? static_cast<float>(p) : 0.0F;
  spec.key = {batch.seed, batch.micro_step, dropout_stream(unit, static_cast<std::uint32_t>(site))};
  spec.base = static_cast<std::uint64_t>(batch.first_sample * elements_per_sample);
  return spec;
}

}  // namespace zl
