// Trains a small GPT on a line of text with ZeRO-2 over four ranks, each a thread of this program.
#include <cstdio>
#include <string>
#include <vector>

#include "backends/cpu/world.h"
#include "core/train/initialize.h"

int main() {
  zl::ModelConfig model;  // a GPT-2 with 2 blocks over bytes
  model.layers = 2;
  model.hidden = 64;
  model.heads = 4;
  model.vocab = 256;
  model.max_sequence = 32;

  zl::Strategy strategy;
  strategy.zero.stage = 2;  // gradients and optimizer state are sharded
  strategy.micro_batch = 2;
  strategy.optimizer.lr = 3e-3;

  const std::string text =
      "In the beginning God created the heaven and the earth. And the earth was without form, "
      "and void; and darkness was upon the face of the deep. ";

  double first = 0, last = 0;
  auto world = zl::cpu::make_world({.ranks = 4});
  world->run([&](zl::RankHandle rank) {  // runs once on every rank
    zl::Session session = zl::initialize(model, strategy, rank.device, rank.communicator);
    const auto length = static_cast<std::size_t>(session.sequence_length());
    const auto me = static_cast<std::size_t>(rank.communicator.rank());
    for (std::size_t step = 0; step < 60; ++step) {
      std::vector<std::int32_t> tokens, targets;
      for (std::size_t row = 0; row < 2; ++row) {
        const std::size_t start = step * 13 + (me * 2 + row) * 29;
        for (std::size_t i = 0; i < length; ++i) {
          tokens.push_back(text[(start + i) % text.size()]);
          targets.push_back(text[(start + i + 1) % text.size()]);
        }
      }
      session.forward(tokens, targets);
      session.backward();
      const zl::StepMetrics metrics = session.step();
      if (me != 0) continue;
      if (step == 0) first = metrics.loss;
      last = metrics.loss;
      if (step % 10 == 9) std::printf("step %2zu  loss %.3f\n", step + 1, metrics.loss);
    }
  });
  return last < first / 2 ? 0 : 1;  // it has learned the text, or something is wrong
}
