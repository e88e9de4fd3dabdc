// Published runs beside their predictions, as rows.
#include <SQLiteCpp/SQLiteCpp.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "results/checked_row.h"
#include "results/guarded.h"
#include "results/store.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

std::vector<double> measurements_of(const CheckedRow& row) {
  try {
    std::vector<double> all;
    for (const Json& each : parse_json(row.text("measurements"), "the list")) {
      all.push_back(number_at(each, "a measurement"));
    }
    return all;
  } catch (const Error& error) {
    row.fail("measurements", error.what());
  }
}

}  // namespace

void Store::keep_published(std::span<const PublishedPrediction> predictions) {
  guarded(database_->getFilename(), [&] {
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement insert(
        *database_,
        "INSERT OR REPLACE INTO published (run, quantity, software, gpu, source, link, measured,"
        " predicted, low, high, left_out, is_composed, measurements)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const PublishedPrediction& each : predictions) {
      int at = 0;
      insert.bind(++at, each.run);
      insert.bind(++at, each.is_memory ? "memory" : "time");
      for (const std::string* text : {&each.software, &each.gpu, &each.source, &each.link}) {
        insert.bind(++at, *text);
      }
      for (const double number :
           {each.measured, each.predicted, each.low, each.high, each.left_out}) {
        insert.bind(++at, number);
      }
      insert.bind(++at, each.is_composed ? 1 : 0);
      insert.bind(++at, to_text(Json(each.measurements), -1));
      insert.exec();
      insert.reset();
    }
    transaction.commit();
  });
}

std::vector<PublishedPrediction> Store::published() {
  return guarded(database_->getFilename(), [&] {
    std::vector<PublishedPrediction> all;
    SQLite::Statement select(*database_, "SELECT * FROM published ORDER BY source, run, software");
    while (select.executeStep()) {
      const CheckedRow row(
          select, {database_->getFilename(), "published", select.getColumn("run").getString()});
      PublishedPrediction& each = all.emplace_back();
      each.run = row.text("run");
      each.source = row.text("source");
      each.link = row.text("link");
      each.software = row.text("software");
      each.gpu = row.text("gpu");
      const std::string quantity = row.text("quantity");
      each.is_memory = quantity == "memory";
      if (!each.is_memory && quantity != "time") row.fail("quantity", "is neither time nor memory");
      each.measured = row.number("measured");
      each.predicted = row.number("predicted");
      each.low = row.number("low");
      each.high = row.number("high");
      each.left_out = row.number("left_out");
      each.is_composed = row.whole("is_composed") != 0;
      each.measurements = measurements_of(row);
      each.predicted_at = row.text("predicted_at");
    }
    return all;
  });
}

}  // namespace zl
