// The runs under way of a Store.
#include <SQLiteCpp/SQLiteCpp.h>

#include <cstring>
#include <utility>

#include "results/checked_row.h"
#include "results/guarded.h"
#include "results/store.h"

namespace zl {
namespace {

constexpr int kDeadSeconds = 600;

}  // namespace

std::int64_t Store::begin_live(const LiveRun& run) {
  return guarded(database_->getFilename(), [&] {
    SQLite::Statement dead(*database_, "DELETE FROM live_runs WHERE updated <= unixepoch() - ?1");
    dead.bind(1, kDeadSeconds);
    dead.exec();
    SQLite::Statement write(*database_,
                            "INSERT INTO live_runs (scenario, strategy, backend, steps, loss,"
                            " updated) VALUES (?1, ?2, ?3, ?4, x'', unixepoch())");
    write.bind(1, run.scenario);
    write.bind(2, run.strategy);
    write.bind(3, run.backend);
    write.bind(4, run.steps);
    write.exec();
    return database_->getLastInsertRowid();
  });
}

void Store::update_live(std::int64_t id, std::int64_t first_step, const std::vector<double>& loss) {
  guarded(database_->getFilename(), [&] {
    SQLite::Statement write(*database_,
                            "UPDATE live_runs SET loss = ?2, first_step = ?3, updated = unixepoch()"
                            " WHERE id = ?1");
    write.bind(1, id);
    write.bind(2, loss.data(), static_cast<int>(loss.size() * sizeof(double)));
    write.bind(3, first_step);
    return write.exec();
  });
}

void Store::end_live(std::int64_t id) {
  guarded(database_->getFilename(), [&] {
    SQLite::Statement remove(*database_, "DELETE FROM live_runs WHERE id = ?1");
    remove.bind(1, id);
    return remove.exec();
  });
}

std::vector<LiveRun> Store::live_runs() {
  return guarded(database_->getFilename(), [&] {
    std::vector<LiveRun> runs;
    SQLite::Statement read(*database_,
                           "SELECT id, scenario, strategy, backend, steps, loss, first_step"
                           " FROM live_runs"
                           " WHERE updated > unixepoch() - ?1 ORDER BY id");
    read.bind(1, kDeadSeconds);
    while (read.executeStep()) {
      const std::string id = std::to_string(read.getColumn(0).getInt64());
      const CheckedRow row(read, {database_->getFilename(), "live_runs", id});
      LiveRun run{row.whole("id"),        row.text("scenario"), row.text("strategy"),
                  row.text("backend"),    row.whole("steps"),   {},
                  row.whole("first_step")};
      const std::string loss = row.blob("loss");
      run.loss.resize(loss.size() / sizeof(double));
      if (!run.loss.empty())
        std::memcpy(run.loss.data(), loss.data(), run.loss.size() * sizeof(double));
      runs.push_back(std::move(run));
    }
    return runs;
  });
}

}  // namespace zl
