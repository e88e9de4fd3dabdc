#include "core/train/initialize.h"

namespace zl {

Session::Session(const ModelConfig& model, const Strategy& strategy, Device& device,
                 Communicator& communicator, const InitializeOptions& options)
    : context_(device, communicator, {options.device_memory, options.record_trace, false}),
      engine_(context_, model, strategy,
              options.sequence_length > 0 ? options.sequence_length : model.max_sequence,
              options.seed) {}

Session::~Session() {
  // The last step's ops may still run; the engine's buffers must outlive them.
  try {
    context_.synchronize(StreamId::compute);
  } catch (const std::exception&) {
    // The error that ended the work was thrown where it happened.
  }
}

std::unique_ptr<Session> initialize(ModelConfig model, const Strategy& strategy, Device& device,
                                    Communicator& world, const InitializeOptions& options) {
  model.complete();
  return std::make_unique<Session>(model, strategy, device, world, options);
}

}  // namespace zl
