#include "scenarios/published/validate_tables.h"

#include <algorithm>
#include <functional>
#include <map>

namespace zl {

namespace {

std::string errors_text(const Errors& errors) {
  const auto percent = [](double value) { return readable(value, Unit::fraction); };
  return "mean error " + percent(errors.mape) + ", bias " + percent(errors.bias) + ", p95 " +
         percent(errors.p95) + ", inside their bars " + percent(errors.inside);
}

}  // namespace

Table accuracy_table(std::span<const Accuracy> all, bool with_source) {
  Table table{{{"software", Align::left},
               {"GPU", Align::left},
               {"kind", Align::left},
               {"runs"},
               {"mean error", Align::right, Unit::fraction},
               {"bias", Align::right, Unit::fraction},
               {"p95", Align::right, Unit::fraction},
               {"rank correlation"},
               {"inside bar", Align::right, Unit::fraction}},
              {}};
  // As predicted by fits without what is judged.
  const bool is_known =
      std::ranges::any_of(all, [](const Accuracy& each) { return each.left_out.has_value(); });
  if (is_known) {
    for (const char* name :
         {"left out: mean error", "left out: bias", "left out: p95", "left out: inside bar"}) {
      table.columns.push_back({name, Align::right, Unit::fraction});
    }
  }
  if (with_source) table.columns.insert(table.columns.begin(), {"source", Align::left});
  for (const Accuracy& each : all) {
    std::vector<Cell> row = {each.software,
                             each.gpu,
                             std::string(name_of(each.kind)),
                             each.rows,
                             each.mape,
                             each.bias,
                             each.p95,
                             each.rows < 3 ? Cell() : Cell(each.rank_correlation),
                             each.inside};
    if (is_known) {
      const Errors errors = each.left_out.value_or(Errors());
      for (const double error : {errors.mape, errors.bias, errors.p95, errors.inside}) {
        row.push_back(each.left_out ? Cell(error) : Cell());
      }
    }
    if (with_source) row.insert(row.begin(), each.source);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string headline(std::span<const Judged> judged) {
  std::string text;
  for (const TimeKind kind : {TimeKind::measured, TimeKind::composed}) {
    const Accuracy all = accuracy_of_kind(judged, kind);
    if (all.rows == 0) continue;
    text += std::to_string(all.rows) +
            (kind == TimeKind::measured ? " measured: " : " composed of timed operators: ") +
            errors_text(all) + "\n";
    if (all.left_out) text += "  by fits without their group: " + errors_text(*all.left_out) + "\n";
  }
  return text;
}

Table worst_table(std::span<const Accuracy> all, Unit unit) {
  Table table{{{"run", Align::left},
               {"software", Align::left},
               {"measured", Align::right, unit},
               {"predicted", Align::right, unit},
               {"error", Align::right, Unit::fraction},
               {"inside bar", Align::left}},
              {}};
  for (const Accuracy& group : all) {
    for (const Judged* each : group.worst) {
      table.rows.push_back({each->run->id, each->run->software, each->measured, each->predicted,
                            each->error(), std::string(each->is_inside() ? "yes" : "no")});
    }
  }
  return table;
}

std::vector<std::pair<std::string, std::int64_t>> reasons(std::span<const Judged> judged) {
  std::map<std::string, std::int64_t> counts;
  for (const Judged& each : judged) {
    if (!each.is_predicted()) ++counts[each.why_not];
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater{}, [](const auto& each) { return each.second; });
  return sorted;
}

Table not_predicted_table(std::span<const Judged> judged) {
  Table table{{{"not predicted because", Align::left}, {"runs"}}, {}};
  for (const auto& [why, count] : reasons(judged)) table.rows.push_back({why, count});
  return table;
}

Table judged_table(std::span<const Judged> judged, Unit unit) {
  Table table{{{"run", Align::left},
               {"source", Align::left},
               {"software", Align::left},
               {"GPU", Align::left},
               {"measurements"},
               {"measured", Align::right, unit},
               {"predicted", Align::right, unit},
               {"error", Align::right, Unit::fraction},
               {"left out: error", Align::right, Unit::fraction},
               {"inside bar", Align::left},
               {"link", Align::left}},
              {}};
  for (const Judged& each : judged) {
    if (!each.is_predicted()) continue;
    table.rows.push_back({each.run->id, each.run->source, each.run->software, each.run->gpu,
                          std::ssize(each.every), each.measured, each.predicted, each.error(),
                          each.left_out > 0 ? Cell(each.left_out / each.measured - 1) : Cell(),
                          std::string(each.is_inside() ? "yes" : "no"), each.run->link});
  }
  return table;
}

}  // namespace zl
