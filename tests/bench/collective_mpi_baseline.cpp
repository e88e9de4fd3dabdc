// What MPI needs for the collectives of collective_bench: mpirun -np 2 collective_mpi_baseline.
// Prints one line per operation and size: the median of nine runs, in microseconds.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

namespace {

double median_microseconds(const std::function<void()>& work) {
  constexpr int kWarmUp = 3, kRepeats = 9;
  for (int i = 0; i < kWarmUp; ++i) work();
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    work();
    times.push_back((MPI_Wtime() - start) * 1e6);
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

void measure(int bytes, int rank, int ranks) {
  const int count = bytes / 4, chunk = count / ranks;
  std::vector<float> full(static_cast<std::size_t>(count), 1.0f);
  float* own = full.data() + static_cast<std::ptrdiff_t>(rank) * chunk;
  std::vector<float> result(static_cast<std::size_t>(chunk));
  const auto reduce_scatter = [&] {
    MPI_Reduce_scatter_block(full.data(), result.data(), chunk, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  const auto all_gather = [&] {
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, full.data(), chunk, MPI_FLOAT,
                  MPI_COMM_WORLD);
  };
  const std::pair<const char*, std::function<void()>> patterns[] = {
      {"all_reduce",
       [&] {
         MPI_Allreduce(MPI_IN_PLACE, full.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
       }},
      {"reduce_scatter", reduce_scatter},
      {"all_gather", all_gather},
      {"reduce_scatter_all_gather",
       [&] {
         reduce_scatter();
         std::copy(result.begin(), result.end(), own);
         all_gather();
       }},
  };
  for (const auto& [name, work] : patterns) {
    const double time = median_microseconds(work);
    if (rank == 0) std::printf("%s/bytes:%d/ranks:%d %.1f us\n", name, bytes, ranks, time);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (const int bytes : {1 << 10, 256 << 10, 4 << 20, 64 << 20}) measure(bytes, rank, ranks);
  MPI_Finalize();
}
