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

Table answers_table(const std::vector<PlanAnswer>& answers, const TrainingBill& bill) {
  Table table{{{"cluster", Align::left},
               {"GPUs"},
               {"sequence"},
               {"plan", Align::left},
               {"memory", Align::right, Unit::bytes},
               {"fits", Align::left},
               {"step", Align::right, Unit::seconds},
               {"tokens/s"},
               {"tokens/s a GPU"},
               {"MFU", Align::right, Unit::fraction}},
              {}};
  add_bill_columns(bill, table);
  table.columns.push_back({"", Align::left, Unit::none, true});
  const Marks marks = marks_of(answers, bill);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const PlanAnswer& answer = answers[i];
    auto& row = table.rows.emplace_back();
    row = {answer.cluster, answer.gpus, answer.sequence_length};
    if (!answer.best) {
      row.resize(table.columns.size());
      row.back() = answer.refusal;
      continue;
    }
    const RunResult& run = answer.best->result;
    row.insert(row.end(), {answer.best->strategy.strategy.name, bytes_that_must_fit(run),
                           std::string(name_of(fits(run))), run.step_time.median,
                           std::llround(run.tokens_per_second), std::llround(each_gpu(answer)),
                           run.mfu > 0 ? Cell(run.mfu) : Cell()});
    add_bill(run, bill_of(answer, bill), row);
    row.emplace_back(marks[i]);
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
