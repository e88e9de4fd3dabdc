#include "results/note_rows.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <sstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "results/checked_row.h"

namespace zl {

void write_notes(SQLite::Database& database, std::int64_t run, const RunNotes& notes) {
  std::istringstream words(notes.tags);
  for (std::string tag; words >> tag;) require_name(tag, "tags");
  SQLite::Statement write(database,
                          "INSERT INTO notes (run, note, tags) VALUES (?1, ?2, ?3)"
                          " ON CONFLICT (run) DO UPDATE SET note = ?2, tags = ?3");
  write.bind(1, run);
  write.bind(2, notes.note);
  write.bind(3, notes.tags);
  write.exec();
}

RunNotes read_notes(SQLite::Database& database, std::int64_t run) {
  SQLite::Statement select(database, "SELECT note, tags FROM notes WHERE run = ?");
  select.bind(1, run);
  if (!select.executeStep()) return {};
  const CheckedRow row(select, {database.getFilename(), "notes", "of run " + std::to_string(run)});
  return {row.text("note"), row.text("tags")};
}

void require_runs(SQLite::Database& database, std::span<const std::int64_t> ids) {
  std::vector<std::int64_t> unknown;
  SQLite::Statement select(database, "SELECT 1 FROM runs WHERE id = ?");
  for (const std::int64_t id : ids) {
    select.bind(1, id);
    if (!select.executeStep()) unknown.push_back(id);
    select.reset();
  }
  if (unknown.empty()) return;
  throw Error(ErrorCode::invalid,
              fmt::format("{}: has no run {}; `zerolab runs` lists those that it has",
                          database.getFilename(), fmt::join(unknown, ", ")));
}

}  // namespace zl
