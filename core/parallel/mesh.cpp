#include "core/parallel/mesh.h"

#include <string>

#include "core/base/error.h"

namespace zl {

int Mesh::size(Axis axis) const {
  switch (axis) {
    case Axis::tensor:
      return tensor;
    case Axis::context:
      return context;
    case Axis::shard:
      return shard;
    case Axis::replicate:
      return replicate;
    case Axis::data:
      return shard * replicate;
    case Axis::pipeline:
      return pipeline;
    case Axis::world:
      return ranks();
    case Axis::secondary:
      return secondary;
    case Axis::expert:
      return 1;
  }
  return 1;
}

int Mesh::stride(Axis axis) const {
  switch (axis) {
    case Axis::context:
      return tensor;
    case Axis::shard:
    case Axis::secondary:
    case Axis::data:
      return tensor * context;
    case Axis::replicate:
      return tensor * context * shard;
    case Axis::pipeline:
      return tensor * context * shard * replicate;
    case Axis::tensor:
    case Axis::expert:
    case Axis::world:
      return 1;
  }
  return 1;
}

std::vector<int> Mesh::members(int rank, Axis axis) const {
  std::vector<int> members;
  const int first = group(rank, axis);
  for (int i = 0; i < size(axis); ++i) members.push_back(first + i * stride(axis));
  return members;
}

void Mesh::check(int wanted) const {
  const std::string sizes = "mesh: tensor " + std::to_string(tensor) + " x context " +
                            std::to_string(context) + " x shard " + std::to_string(shard) +
                            " x replicate " + std::to_string(replicate) + " x pipeline " +
                            std::to_string(pipeline);
  for (const int each : {tensor, context, shard, replicate, pipeline, secondary}) {
    if (each < 1) throw Error(ErrorCode::invalid, sizes + ": every size is at least 1");
  }
  if (shard % secondary != 0) {
    throw Error(ErrorCode::invalid,
                sizes + ": secondary " + std::to_string(secondary) + " does not divide shard");
  }
  if (ranks() != wanted) {
    throw Error(ErrorCode::invalid, sizes + " makes " + std::to_string(ranks()) + " ranks, not " +
                                        std::to_string(wanted));
  }
}

}  // namespace zl
