#include "scenarios/planner/answers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "scenarios/files/defaults.h"

namespace zl {
namespace {

// Of the best throughput a GPU, at the knee.
constexpr double kKnee = 0.8;

using Marks = std::vector<std::string>;
using Places = std::vector<std::size_t>;

void mark(Marks& marks, std::size_t place, const char* what) {
  marks[place] += (marks[place].empty() ? "" : ", ") + std::string(what);
}

double each_gpu(const PlanAnswer& answer) {
  return answer.best->result.tokens_per_second / static_cast<double>(answer.gpus);
}

TrainingBill bill_of(const PlanAnswer& answer, TrainingBill bill) {
  bill.board_watts = answer.board_watts;
  if (answer.gpu_hour_price > 0) bill.gpu_hour_price = answer.gpu_hour_price;
  return bill;
}

// Answers that have a plan, of one length and kind, or of one length.
template <class Key>
std::map<Key, Places> grouped(const std::vector<PlanAnswer>& answers,
                              Key (*key)(const PlanAnswer&)) {
  std::map<Key, Places> groups;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].best) groups[key(answers[i])].push_back(i);
  }
  return groups;
}

void mark_numbers(const std::vector<PlanAnswer>& answers, Places places, Marks& marks) {
  std::ranges::stable_sort(places, {}, [&](std::size_t i) { return answers[i].gpus; });
  if (answers[places.front()].gpus == answers[places.back()].gpus) return;
  mark(marks, places.front(), "fewest that fit");
  double most = 0;
  for (const std::size_t i : places) most = std::max(most, each_gpu(answers[i]));
  const auto knee = std::ranges::find_if(places.rbegin(), places.rend(), [&](std::size_t i) {
    return each_gpu(answers[i]) >= kKnee * most;
  });
  if (knee != places.rbegin()) mark(marks, *knee, "knee");
}

// Of a token.
double price_of(const PlanAnswer& answer, const TrainingBill& bill) {
  const double price = bill_of(answer, bill).gpu_hour_price;
  return (price > 0 ? price : 1) / each_gpu(answer);
}

void mark_kinds(const std::vector<PlanAnswer>& answers, const Places& places,
                const TrainingBill& bill, Marks& marks) {
  const std::string first = kind_of_gpus(answers[places.front()].cluster);
  if (std::ranges::all_of(
          places, [&](std::size_t i) { return kind_of_gpus(answers[i].cluster) == first; })) {
    return;
  }
  const std::size_t least = *std::ranges::min_element(
      places, {}, [&](std::size_t i) { return price_of(answers[i], bill); });
  const bool has_price = bill_of(answers[least], bill).gpu_hour_price > 0;
  mark(marks, least, has_price ? "cheapest" : "fewest GPU-hours");
}

Marks marks_of(const std::vector<PlanAnswer>& answers, const TrainingBill& bill) {
  Marks marks(answers.size());
  using OfKind = std::pair<std::int64_t, std::string>;
  const auto kinds = grouped<OfKind>(answers, [](const PlanAnswer& answer) {
    return OfKind(answer.sequence_length, kind_of_gpus(answer.cluster));
  });
  for (const auto& each : kinds) mark_numbers(answers, each.second, marks);
  const auto lengths = grouped<std::int64_t>(
      answers, [](const PlanAnswer& answer) { return answer.sequence_length; });
  for (const auto& each : lengths) mark_kinds(answers, each.second, bill, marks);
  return marks;
}

}  // namespace

std::string kind_of_gpus(const std::string& cluster) {
  if (devices_in_name(cluster) == 0) return cluster;
  return cluster.substr(cluster.find('x') + 1);
}

namespace {

bool has_several_lengths(const std::vector<PlanAnswer>& answers) {
  return std::ranges::any_of(answers, [&answers](const PlanAnswer& each) {
    return each.sequence_length != answers.front().sequence_length;
  });
}

// What is asked and what decides comes first, as in the table of plans.
Table empty_answers_table(const std::vector<PlanAnswer>& answers, const TrainingBill& bill) {
  const Column sequence{"sequence"};
  const bool is_asked = has_several_lengths(answers);
  Table table{{{"cluster", Align::left}, {"GPUs"}}, {}};
  if (is_asked) table.columns.push_back(sequence);
  table.columns.push_back({"step", Align::right, Unit::seconds});
  add_bill_columns(bill, table);
  for (Column column : {Column{"memory", Align::right, Unit::bytes}, Column{"fits", Align::left},
                        Column{"note", Align::left, Unit::none, true},
                        Column{"plan", Align::left, Unit::none, true}, Column{"tokens/s"},
                        Column{"tokens/s a GPU"}, Column{"MFU", Align::right, Unit::fraction}}) {
    table.columns.push_back(std::move(column));
  }
  add_work_columns(bill, table);
  if (!is_asked) table.columns.push_back(sequence);
  return table;
}

}  // namespace

Table answers_table(const std::vector<PlanAnswer>& answers, const TrainingBill& bill) {
  Table table = empty_answers_table(answers, bill);
  const Marks marks = marks_of(answers, bill);
  const auto column = [&table](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(table.columns, name, &Column::name) -
                                    table.columns.begin());
  };
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const PlanAnswer& answer = answers[i];
    std::vector<Cell> row{answer.cluster, answer.gpus};
    if (has_several_lengths(answers)) row.emplace_back(answer.sequence_length);
    if (answer.best) {
      const RunResult& run = answer.best->result;
      const TrainingBill own = bill_of(answer, bill);
      row.emplace_back(run.step_time.median);
      add_bill(run, own, row);
      row.insert(row.end(),
                 {bytes_that_must_fit(run), std::string(name_of(fits(run))), marks[i],
                  answer.best->strategy.strategy.name, std::llround(run.tokens_per_second),
                  std::llround(each_gpu(answer)), run.mfu > 0 ? Cell(run.mfu) : Cell()});
      add_work(run, own, row);
    }
    row.resize(table.columns.size());
    row[column("sequence")] = answer.sequence_length;
    if (!answer.best) row[column("note")] = answer.refusal;
    table.rows.push_back(std::move(row));
  }
  return table;
}

Json answers_json(const std::vector<PlanAnswer>& answers, const TrainingBill& bill) {
  const Marks marks = marks_of(answers, bill);
  Json all = Json::array();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const PlanAnswer& answer = answers[i];
    Json json = {{"cluster", answer.cluster},
                 {"gpus", answer.gpus},
                 {"sequence_length", answer.sequence_length},
                 {"plan", nullptr},
                 {"mark", marks[i].empty() ? Json(nullptr) : Json(marks[i])},
                 {"why_not", nullptr}};
    if (answer.best) {
      json["plan"] = plan_json(*answer.best, bill_of(answer, bill));
    } else {
      json["why_not"] = answer.refusal;
    }
    all.push_back(std::move(json));
  }
  return {{"schema", 1}, {"answers", all}};
}

}  // namespace zl
