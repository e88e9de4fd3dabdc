// What MPI needs for the collectives of collective_bench, and what our ranks over it need, in turn:
// mpirun -np 2 collective_mpi_baseline. Prints one line per operation and size: the medians of nine
// runs, in microseconds.
#include <mpi.h>

#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "backends/mpi/messages.h"
#include "backends/mpi/world.h"
#include "core/base/median.h"

namespace {

using Work = std::function<void()>;

double microseconds(const Work& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  work();
  return (MPI_Wtime() - start) * 1e6;
}

// Medians of both, measured in turn.
std::pair<double, double> medians(const Work& first, const Work& second) {
  constexpr int kWarmUp = 3, kRepeats = 9;
  std::vector<double> of_first, of_second;
  for (int i = -kWarmUp; i < kRepeats; ++i) {
    const double a = microseconds(first), b = microseconds(second);
    if (i < 0) continue;
    of_first.push_back(a);
    of_second.push_back(b);
  }
  return {zl::median(of_first), zl::median(of_second)};
}

void measure(int bytes, const zl::RankHandle& handle) {
  using zl::CollectiveKind;
  const int rank = handle.communicator.rank(), ranks = handle.communicator.size();
  const int count = bytes / 4, chunk = count / ranks;
  std::vector<float> full(static_cast<std::size_t>(count), 1.0f);
  float* own = full.data() + static_cast<std::ptrdiff_t>(rank) * chunk;
  std::vector<float> result(static_cast<std::size_t>(chunk));
  const auto view = [](float* data, int elements) {
    return zl::TensorView{reinterpret_cast<std::byte*>(data), zl::DType::f32, zl::Shape{elements}};
  };
  const auto ours = [&](CollectiveKind kind, float* from, int in, float* to, int out) -> Work {
    return [=, &handle] {
      const zl::Segment segment{view(from, in), view(to, out)};
      handle.communicator.run(zl::StreamId::compute,
                              {kind, zl::ReduceOp::max, zl::Purpose::data, {&segment, 1}}, nullptr);
    };
  };
  struct Pattern {
    const char* name;
    Work mpi, zerolab;
  };
  const Pattern patterns[] = {
      {"all_reduce",
       [&] { MPI_Allreduce(MPI_IN_PLACE, full.data(), count, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD); },
       ours(CollectiveKind::all_reduce, full.data(), count, full.data(), count)},
      {"reduce_scatter",
       [&] {
         MPI_Reduce_scatter_block(full.data(), result.data(), chunk, MPI_FLOAT, MPI_MAX,
                                  MPI_COMM_WORLD);
       },
       ours(CollectiveKind::reduce_scatter, full.data(), count, result.data(), chunk)},
      {"all_gather",
       [&] {
         MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, full.data(), chunk, MPI_FLOAT,
                       MPI_COMM_WORLD);
       },
       ours(CollectiveKind::all_gather, own, chunk, full.data(), count)},
  };
  for (const auto& [name, mpi, zerolab] : patterns) {
    const auto [theirs, mine] = medians(mpi, zerolab);
    if (rank > 0) continue;
    std::printf("%s/bytes:%d/ranks:%d mpi %.1f us, zerolab over mpi %.1f us\n", name, bytes, ranks,
                theirs, mine);
  }
}

}  // namespace

int main() {
  const int ranks = zl::mpi::processes().count;  // starts MPI
  zl::mpi::make_world({.ranks = ranks, .threads_per_rank = 1})->run([](zl::RankHandle handle) {
    for (const int bytes : {1 << 10, 256 << 10, 4 << 20, 64 << 20}) measure(bytes, handle);
  });
}
