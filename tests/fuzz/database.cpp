// Bytes of a database. The input changes a good one, four bytes each: where, and to what; so small
// inputs reach deep into a file.
#include "core/base/log.h"
#include "results/store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/results/fixtures.h"

namespace {

std::string good_database() {
  const std::string path = zl::fuzz::files().path("good.db");
  {
    zl::Store store = zl::Store::open(path, zl::Store::Mode::read_write);
    for (const char* backend : {"sim", "cpu"}) {
      zl::RunResult run = zl::test::a_full_run();
      run.outcome = zl::Outcome::ok;
      run.backend = backend;
      store.annotate(store.save(run, zl::test::a_scenario(), zl::test::an_environment()), "a note",
                     "tag other");
    }
    store.begin_live({.scenario = "s", .strategy = "z", .backend = "cpu", .steps = 3, .loss = {}});
  }
  return zl::test::bytes_of(path);
}

void read_all(const std::string& path) {
  zl::Store store = zl::Store::open(path, zl::Store::Mode::read_only);
  int left = 5;
  for (const zl::RunSummary& run : store.list()) {
    if (left-- == 0) break;
    zl::fuzz::takes([&] { store.load(run.id); });
    zl::fuzz::takes([&] { store.environment(run.id); });
    zl::fuzz::takes([&] { store.scenario_json(run.scenario_hash); });
  }
  zl::fuzz::takes([&] { store.predictions(); });
  zl::fuzz::takes([&] { store.live_runs(); });
}

}  // namespace

ZL_FUZZ_TARGET(database) {
  static const std::string good = good_database();
  zl::set_log_level(zl::LogLevel::quiet);
  std::string bytes = good;
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    const std::size_t at = data[i] << 16 | data[i + 1] << 8 | data[i + 2];
    bytes[at % bytes.size()] = static_cast<char>(data[i + 3]);
  }
  const std::string path = zl::fuzz::files().write("changed.db", bytes);
  for (const char* beside : {"-wal", "-shm"}) std::filesystem::remove(path + beside);
  zl::fuzz::takes([&] { read_all(path); });
  return 0;
}
