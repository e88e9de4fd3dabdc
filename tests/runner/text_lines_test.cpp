// Texts with labels: what a file may say, and what it takes no model to tell.
#include <gtest/gtest.h>

#include <fstream>

#include "core/base/error.h"
#include "scenarios/run/corpus.h"
#include "scenarios/run/label_scores.h"
#include "tests/temp_folder.h"

namespace zl::test {
namespace {

TextLines read(const std::string& text, const LabelsWanted& wanted) {
  const TempFolder folder;
  const std::string path = (folder / "texts.jsonl").string();
  std::ofstream(path) << text;
  return read_text_lines(path, wanted);
}

std::string refusal(const std::string& text, const LabelsWanted& wanted) {
  try {
    read(text, wanted);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "";
}

TEST(TextLines, NumberTheirLabels) {
  const TextLines texts = read(
      "{\"text\": \"a\", \"label\": \"old\"}\r\n\n"
      "{\"text\": \"b\", \"text_pair\": \"c\", \"label\": \"new\"}",
      {.any = true, .most = 2});
  ASSERT_EQ(texts.lines.size(), 2u);
  EXPECT_EQ(texts.labels, (std::vector<std::string>{"new", "old"}));
  EXPECT_EQ(texts.lines[0].label, 1);
  EXPECT_EQ(texts.lines[1].pair, "c");
  EXPECT_EQ(texts.counts(), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(read(R"({"text": "a", "label": 1})"
                 "\n"
                 R"({"text": "b", "label": 0})",
                 {.any = true, .most = 2})
                .lines[0]
                .label,
            1);
}

// By the model's names where the data's are among them, else by the data's own.
TEST(TextLines, AreNumberedAsTheModelNamesItsLabels) {
  const LabelsWanted model{.any = true, .most = 3, .of_model = {"old", "new", "mid"}};
  const TextLines some = read(R"({"text": "a", "label": "new"})", model);
  EXPECT_EQ(some.labels, model.of_model);
  EXPECT_EQ(some.lines[0].label, 1);
  const TextLines numbers = read(
      "{\"text\": \"a\", \"label\": 0}\n"
      "{\"text\": \"b\", \"label\": 1}",
      model);
  EXPECT_EQ(numbers.labels, model.of_model);
  EXPECT_EQ(numbers.lines[1].label, 1);
  const TextLines others = read(
      "{\"text\": \"a\", \"label\": \"new\"}\n"
      "{\"text\": \"b\", \"label\": \"ancient\"}",
      model);
  EXPECT_EQ(others.labels, (std::vector<std::string>{"ancient", "new"}));
  EXPECT_EQ(others.lines[1].label, 0);
  // What judges is numbered as what was trained on.
  LabelsWanted judged = model;
  judged.like = &others;
  EXPECT_EQ(read(R"({"text": "a", "label": "new"})", judged).lines[0].label, 1);
  judged.like = &numbers;
  EXPECT_EQ(read(R"({"text": "a", "label": 2})", judged).lines[0].label, 2);
}

TEST(TextLines, NameFileLineAndKeyOfADefect) {
  const LabelsWanted two{.any = true, .most = 2};
  const auto says = [&](const std::string& text, const std::string& what) {
    const std::string message = refusal(text, two);
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  const std::string good = "{\"text\": \"a\", \"label\": 0}\n";
  says("", "has no line");
  says(good + "{\"label\": 1}", "texts.jsonl:2: text: missing");
  says(good + "{\"text\": 3, \"label\": 1}", "texts.jsonl:2: text: ");
  says(good + "{\"text\": \"b\"}", "texts.jsonl:2: label: missing");
  says(good + "{\"text\": \"b\", \"label\": 1.5}", "texts.jsonl:2: label: 1.5 is neither");
  says(good + "{\"text\": \"b\", \"label\": 2}", "texts.jsonl:2: label: 2 is not one of 0 to 1");
  says(good + "{\"text\": \"b\", \"label\": \"x\"}", "is a text, those before it are not");
  says("{\"text\": \"a\", \"label\": 1}", "no line has 0");
  says(good + "{\"text\": \"\xff\", \"label\": 1}", "texts.jsonl:2");
  const TextLines trained{.labels = {"new", "old"}};
  const LabelsWanted like{.any = true, .most = 2, .like = &trained};
  EXPECT_NE(refusal("{\"text\": \"a\", \"label\": \"mid\"}", like).find("is none of the data"),
            std::string::npos);
}

TEST(LabelScores, OfAConfusionMatrix) {
  ConfusionMatrix matrix(3);
  for (int i = 0; i < 8; ++i) matrix.add(0, 0);
  matrix.add(0, 1);
  matrix.add(1, 1);
  EXPECT_DOUBLE_EQ(matrix.accuracy(), 0.9);
  EXPECT_DOUBLE_EQ(matrix.macro_f1(), (16.0 / 17 + 2.0 / 3 + 0) / 3);
  EXPECT_EQ(matrix.by_label({"a", "b", "c"}),
            (std::vector<LabelScores::Of>{{"a", 9, 8, 8}, {"b", 1, 2, 1}, {"c", 0, 0, 0}}));
  const Interval sure = wilson(93, 100);
  EXPECT_NEAR(sure.low, 0.8625, 5e-4);
  EXPECT_NEAR(sure.high, 0.9657, 5e-4);
}

// scikit-learn 1.9.1's MultinomialNB over CountVectorizer, both as they are by default, tells 2,820
// of the same split. With one-letter words, too, (token_pattern r"\b\w+\b") it tells 2,824: .9238.
TEST(LabelScores, NaiveBayesTellsTheTestamentsAsScikitLearnDoes) {
  TextLines train, test;
  try {
    train = read_text_lines(kTestaments, {});
    test = read_text_lines(kHeldOutTestaments, {});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unavailable) throw;
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(train.lines.size(), 24952u);
  EXPECT_EQ(test.lines.size(), 3057u);
  const ConfusionMatrix words = naive_bayes(train, test), most = commonest(train, test);
  EXPECT_EQ(words.correct(), 2820);
  EXPECT_NEAR(words.macro_f1(), 0.8920956788, 1e-9);
  EXPECT_NEAR(most.accuracy(), 0.7671, 5e-5);
}

}  // namespace
}  // namespace zl::test
