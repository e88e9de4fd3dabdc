// Published runs beside their predictions, as rows.
#include <SQLiteCpp/SQLiteCpp.h>

#include "results/checked_row.h"
#include "results/guarded.h"
#include "results/store.h"

namespace zl {

void Store::keep_published(std::span<const PublishedPrediction> predictions) {
  guarded(database_->getFilename(), [&] {
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement insert(
        *database_,
        "INSERT OR REPLACE INTO published (run, quantity, software, gpu, source, link, measured,"
        " predicted, low, high) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const PublishedPrediction& each : predictions) {
      int at = 0;
      insert.bind(++at, each.run);
      insert.bind(++at, each.is_memory ? "memory" : "time");
      for (const std::string* text : {&each.software, &each.gpu, &each.source, &each.link}) {
        insert.bind(++at, *text);
      }
      for (const double number : {each.measured, each.predicted, each.low, each.high}) {
        insert.bind(++at, number);
      }
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
      each.predicted_at = row.text("predicted_at");
    }
    return all;
  });
}

}  // namespace zl
