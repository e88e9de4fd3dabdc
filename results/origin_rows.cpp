#include "results/origin_rows.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include "results/checked_row.h"

namespace zl {
namespace {

std::int64_t environment_row(SQLite::Database& database, const Environment& environment) {
  const auto bind = [&](SQLite::Statement& statement) {
    int at = 0;
    for (const std::string* text :
         {&environment.host, &environment.os, &environment.kernel, &environment.cpu,
          &environment.gpu, &environment.driver, &environment.compiler, &environment.build,
          &environment.commit}) {
      statement.bind(++at, *text);
    }
    statement.bind(++at, environment.cores);
    statement.bind(++at, environment.memory_bytes);
  };
  SQLite::Statement insert(database,
                           "INSERT INTO environments (host, os, kernel, cpu, gpu, driver, compiler,"
                           " build, git_commit, cores, memory_bytes)"
                           " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
  bind(insert);
  insert.exec();
  SQLite::Statement select(database,
                           "SELECT id FROM environments WHERE (host, os, kernel, cpu, gpu, driver,"
                           " compiler, build, git_commit, cores, memory_bytes)"
                           " = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  bind(select);
  select.executeStep();
  return select.getColumn(0).getInt64();
}

void insert_scenario(SQLite::Database& database, const ScenarioRecord& scenario) {
  SQLite::Statement insert(database,
                           "INSERT INTO scenarios (hash, name, json) VALUES (?, ?, ?)"
                           " ON CONFLICT (hash) DO NOTHING");
  insert.bind(1, scenario.hash);
  insert.bind(2, scenario.name);
  insert.bind(3, scenario.json);
  insert.exec();
}

}  // namespace

RunOrigin write_origin_rows(SQLite::Database& database, const ScenarioRecord& scenario,
                            const Environment& environment, const std::string& saved_at) {
  insert_scenario(database, scenario);
  return {scenario.hash, scenario.name, environment_row(database, environment), saved_at};
}

Environment read_environment(SQLite::Database& database, std::int64_t run) {
  SQLite::Statement select(database,
                           "SELECT e.* FROM runs r JOIN environments e ON e.id = r.environment"
                           " WHERE r.id = ?");
  select.bind(1, run);
  const RowName name{database.getFilename(), "environments", "of run " + std::to_string(run)};
  if (!select.executeStep()) {
    throw Error(ErrorCode::invalid,
                name.file + ": no run " + std::to_string(run) + " that has an environment");
  }
  const CheckedRow row(select, name);
  Environment out;
  out.host = row.text("host");
  out.os = row.text("os");
  out.kernel = row.text("kernel");
  out.cpu = row.text("cpu");
  out.cores = row.count("cores");
  out.memory_bytes = row.whole("memory_bytes");
  out.gpu = row.text("gpu");
  out.driver = row.text("driver");
  out.compiler = row.text("compiler");
  out.build = row.text("build");
  out.commit = row.text("git_commit");
  return out;
}

}  // namespace zl
