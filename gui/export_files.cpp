#include "gui/export_files.h"

#include <deque>

#include "core/base/files.h"
#include "results/memory_snapshot.h"
#include "results/perfetto.h"
#include "results/report_html.h"
#include "results/report_markdown.h"
#include "scenarios/report/collect_report.h"
#include "scenarios/run/replay.h"
#include "scenarios/run/stored_run.h"
#include "scenarios/run/trace_run.h"

namespace zl::gui {
namespace {

void write(const QString& file, const std::string& text) {
  AtomicFile out(file.toStdString());
  out.write(text);
  out.commit();
}

std::vector<TimedTrace> timed(const StrategyStudy& strategy, const std::string& name) {
  return timed_traces(*strategy.recording, *strategy.timelines, name);
}

}  // namespace

void save_perfetto(const Study& study, const std::vector<const StrategyStudy*>& strategies,
                   const QString& file) {
  std::deque<TimedTrace> traces;
  std::vector<NamedTrace> named;
  for (const StrategyStudy* each : strategies) {
    if (!each->recording) continue;
    for (TimedTrace& one : timed(*each, trace_name(study.scenario, each->imported, "sim"))) {
      traces.push_back(std::move(one));
      named.push_back(traces.back().named());
    }
  }
  write(file, perfetto_json(named));
}

void save_memory_snapshot(const StrategyStudy& strategy, const QString& file) {
  const std::vector<TimedTrace> stages = timed(strategy, strategy.name());
  std::vector<const Trace*> ranks;
  for (const TimedTrace& each : stages) ranks.push_back(&each.trace);
  write(file, memory_snapshot(ranks));
}

void save_study_report(const Study& study, const std::vector<const StrategyStudy*>& strategies,
                       const QString& file) {
  Store store = Store::in_memory();  // a report is of a database: this one is of what is shown
  const Environment environment = detect_environment();
  for (const StrategyStudy* each : strategies) {
    store_run(store, study.scenario, each->imported, each->result, environment);
  }
  const Report report = collect_report(store, "zerolab-gui", {});
  write(file, file.endsWith(".md") ? report_markdown(report) : report_html(report));
}

void save_report(const std::filesystem::path& database, const QString& file,
                 const std::vector<std::int64_t>& runs) {
  Store store = Store::open(database, Store::Mode::read_only);
  const Report report = collect_report(store, database.string(), {"", {}, runs});
  write(file, file.endsWith(".md") ? report_markdown(report) : report_html(report));
}

}  // namespace zl::gui
