// What people do with the runs of a Store: notes, tags, deleting, merging.
#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "core/base/log.h"
#include "core/base/text.h"
#include "results/guarded.h"
#include "results/note_rows.h"
#include "results/origin_rows.h"
#include "results/run_rows.h"

namespace zl {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

template <class Change>
void Store::change_notes(std::span<const std::int64_t> ids, Change&& change) {
  guarded(database_->getFilename(), [&] {
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    require_runs(*database_, ids);
    for (const std::int64_t id : ids) {
      RunNotes notes = read_notes(*database_, id);
      change(notes);
      write_notes(*database_, id, notes);
    }
    transaction.commit();
  });
}

void Store::annotate(std::int64_t id, const std::string& note, const std::string& tags) {
  change_notes({&id, 1}, [&](RunNotes& notes) { notes = {note, tags}; });
}

void Store::note(std::span<const std::int64_t> ids, const std::string& text) {
  change_notes(ids, [&](RunNotes& notes) { notes.note = text; });
}

void Store::tag(std::span<const std::int64_t> ids, const std::string& tags) {
  change_notes(ids, [&](RunNotes& notes) {
    std::vector<std::string> all = words_of(notes.tags);
    for (const std::string& tag : words_of(tags)) {
      if (std::find(all.begin(), all.end(), tag) == all.end()) all.push_back(tag);
    }
    notes.tags = fmt::format("{}", fmt::join(all, " "));
  });
}

void Store::untag(std::span<const std::int64_t> ids, const std::string& tags) {
  const std::vector<std::string> gone = words_of(tags);
  change_notes(ids, [&](RunNotes& notes) {
    std::vector<std::string> all = words_of(notes.tags);
    std::erase_if(all, [&](const std::string& tag) {
      return std::find(gone.begin(), gone.end(), tag) != gone.end();
    });
    notes.tags = fmt::format("{}", fmt::join(all, " "));
  });
}

void Store::remove(std::span<const std::int64_t> ids) {
  guarded(database_->getFilename(), [&] {
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    require_runs(*database_, ids);
    SQLite::Statement remove(*database_, "DELETE FROM runs WHERE id = ?");
    for (const std::int64_t id : ids) {
      remove.bind(1, id);
      remove.exec();
      remove.reset();
    }
    database_->exec("DELETE FROM scenarios WHERE hash NOT IN (SELECT scenario FROM runs)");
    database_->exec("DELETE FROM environments WHERE id NOT IN (SELECT environment FROM runs)");
    transaction.commit();
  });
}

Store::Merged Store::merge(Store& from, const RunFilter& filter) {
  std::vector<RunSummary> runs = from.list(filter);
  std::reverse(runs.begin(), runs.end());  // ids in the order of those there
  return guarded(database_->getFilename(), [&] {
    Merged merged;
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    for (const RunSummary& run : runs) {
      try {
        (merge_run(from, run) ? merged.added : merged.present) += 1;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::invalid) throw;
        ++merged.passed_over;
        log_warning(fmt::format("run {} is passed over: {}", run.id, error.what()));
      }
    }
    transaction.commit();
    return merged;
  });
}

// Whether it was not here yet. What both have of one run stays as it is here, but for notes that
// are only there.
bool Store::merge_run(Store& from, const RunSummary& run) {
  const RunResult result = from.load(run.id);
  const ScenarioRecord scenario{run.scenario_hash, run.scenario_name,
                                from.scenario_json(run.scenario_hash)};
  const Environment environment = from.environment(run.id);
  const RunOrigin origin = write_origin_rows(*database_, scenario, environment, run.saved_at);
  std::int64_t id = find_run(*database_, origin, result);
  const bool is_new = id == 0;
  if (is_new) id = insert_run(*database_, origin, result);
  const bool said = !run.note.empty() || !run.tags.empty();
  const RunNotes here = is_new ? RunNotes{} : read_notes(*database_, id);
  if (said && here.note.empty() && here.tags.empty()) {
    write_notes(*database_, id, {run.note, run.tags});
  }
  return is_new;
}

void Store::write_copy(const std::filesystem::path& path) {
  if (std::filesystem::exists(std::filesystem::symlink_status(path))) {
    throw Error(ErrorCode::failed, path.string() + ": is there already; name another file");
  }
  const std::filesystem::path half = path.string() + ".tmp";
  std::error_code ignored;
  std::filesystem::remove(half, ignored);
  guarded(path.string(), [&] {
    SQLite::Database file(half.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    SQLite::Backup(file, *database_).executeStep();
  });
  std::filesystem::rename(half, path);
}

}  // namespace zl
