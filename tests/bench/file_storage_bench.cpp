// The file tier against fio on the same disk: each iteration moves one object and then lets fio
// move as many bytes with the same block size and depth. ZEROLAB_BENCH_FOLDER chooses the disk
// (default: the working folder); without fio only the own rate is reported.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cpu/file_storage.h"
#include "core/base/crc32c.h"
#include "tests/bench/paired.h"

namespace {

using namespace zl;

constexpr std::int64_t kObject = std::int64_t{256} << 20;

std::string disk_folder() {
  const char* folder = std::getenv("ZEROLAB_BENCH_FOLDER");
  return folder != nullptr ? folder : ".";
}

// Bytes per second of one pass of fio over a file of kObject bytes; 0: fio is not installed.
double fio_rate(const AioConfig& aio, bool write, bool direct) {
  const std::string file = disk_folder() + "/zerolab-fio-" + std::to_string(getpid());
  std::ostringstream command;
  command << "fio --name=pair --ioengine=io_uring --filename=" << file << " --size=" << kObject
          << " --direct=" << direct << " --bs=" << aio.block_size
          << " --iodepth=" << aio.queue_depth << " --rw=" << (write ? "write" : "read")
          << " --output-format=terse --terse-version=3 2>/dev/null";
  FILE* pipe = popen(command.str().c_str(), "r");
  if (pipe == nullptr) return 0;
  std::array<char, 4096> line{};
  const bool answered = std::fgets(line.data(), line.size(), pipe) != nullptr;
  pclose(pipe);
  std::istringstream fields(answered ? line.data() : "");
  const int wanted = write ? 48 : 7;  // of terse version 3: KiB/s
  std::string field;
  for (int i = 0; i < wanted && std::getline(fields, field, ';'); ++i) {
  }
  return field.empty() ? 0 : 1024 * std::atof(field.c_str());
}

void file_tier(benchmark::State& state, bool write) {
  AioConfig aio;
  aio.block_size = state.range(0) << 10;
  aio.queue_depth = state.range(1);
  const auto storage = cpu::make_file_storage(disk_folder(), 0, aio);
  const bool direct = storage->describe().find("O_DIRECT)") != std::string::npos;
  const ObjectLayout layout({kObject}, aio.block_size);
  const ObjectId object = storage->create("bench", layout);
  const bench::Storage memory(DType::f32, Shape{kObject / 4});
  const ObjectPart part{memory.view.data, kObject};
  for (std::int64_t i = 0; i < kObject; i += 8) std::memcpy(part.data + i, &i, 8);
  for (int slot = 0; slot < 2; ++slot) storage->write(object, {&part, 1});  // fills both slots
  if (write) fio_rate(aio, true, direct);                                   // lays out its file
  std::vector<double> own, fio, ratio;
  for (auto _ : state) {
    const double begin = bench::wall_seconds();
    write ? storage->write(object, {&part, 1}) : storage->read(object, {&part, 1});
    const double seconds = bench::wall_seconds() - begin;
    state.SetIterationTime(seconds);
    own.push_back(static_cast<double>(layout.transfer_bytes()) / seconds);
    fio.push_back(fio_rate(aio, write, direct));
    if (fio.back() > 0) ratio.push_back(own.back() / fio.back());
  }
  for (std::int64_t i = 0; i < kObject; i += 8) {
    if (std::memcmp(part.data + i, &i, 8) != 0) return state.SkipWithError("the data are wrong");
  }
  std::remove((disk_folder() + "/zerolab-fio-" + std::to_string(getpid())).c_str());
  state.counters["GB/s"] = 1e-9 * zl::median(own);
  if (ratio.empty()) return;
  state.counters["fio_GB/s"] = 1e-9 * zl::median(fio);
  state.counters["of_fio"] = zl::median(ratio);
}

void settings(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"KiB", "depth"})->UseManualTime()->Iterations(9)->Unit(benchmark::kMillisecond);
  for (const int kib : {128, 1024, 8192}) bench->Args({kib, 8});
}
BENCHMARK_CAPTURE(file_tier, read, false)->Apply(settings);
BENCHMARK_CAPTURE(file_tier, write, true)->Apply(settings);

void crc32c_of(benchmark::State& state) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{7});
  for (auto _ : state) {
    benchmark::DoNotOptimize(crc32c(bytes.data(), state.range(0)));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(crc32c_of)->ArgName("bytes")->Arg(4096)->Arg(1 << 20)->Arg(256 << 20);

}  // namespace
