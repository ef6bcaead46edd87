#include "collimate/text/rows.h"

#include <gmock/gmock.h>

#include "collimate/host/atomic_file.h"
#include "collimate/host/file_io.h"
#include "collimate/text/files.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class Rows : public testing::Test {
 protected:
  std::vector<std::pair<std::string, Row>> read(const std::string& name, const std::string& content,
                                                const std::string& format = "auto") {
    host::write_file_atomically(directory_.path(name), content);
    std::vector<std::pair<std::string, Row>> rows;
    read_rows(directory_.path(name), format, [&](const RowLocation& location, Row&& row) {
      EXPECT_EQ(location.row, static_cast<int64_t>(rows.size()));
      rows.emplace_back(location.text().substr(directory_.path().size() + 1), std::move(row));
    });
    return rows;
  }
  std::string error(const std::string& name, const std::string& content, const std::string& format = "auto") {
    std::string message = message_of<base::InputError>([&] { read(name, content, format); });
    const size_t at = message.find(directory_.path() + "/");
    if (at != std::string::npos) message.erase(at, directory_.path().size() + 1);
    return message;
  }
  TemporaryDirectory directory_;
};

TEST_F(Rows, JsonLinesKeepTheirLineNumbers) {
  const auto rows = read("a.jsonl", "\xEF\xBB\xBF{\"a\": 1}\n\n  \r\n{\"a\": [\"ü\"]}\r\n{\"a\": 3}");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].first, "a.jsonl:1");
  EXPECT_EQ(rows[1].first, "a.jsonl:4");
  EXPECT_EQ(rows[1].second, json({{"a", {"ü"}}}));
  EXPECT_EQ(rows[2].first, "a.jsonl:5");
}

TEST_F(Rows, JsonArrayElementsKnowTheirLine) {
  const auto rows = read("a.json", "[\n {\"a\": \"x],}\\\"\"},\n {\"a\":\n {\"b\": []}}\n , {\"a\": 3}]\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].second, json({{"a", "x],}\""}}));
  EXPECT_EQ(rows[0].first, "a.json:2");
  EXPECT_EQ(rows[1].first, "a.json:3");
  EXPECT_EQ(rows[2].first, "a.json:5");
  EXPECT_TRUE(read("b.json", " [ ] ").empty());
}

TEST_F(Rows, JsonObjectOfColumns) {
  const auto rows = read("a.json", R"({"a": [1, 2], "b": ["x", "y"]})");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].second, json({{"a", 2}, {"b", "y"}}));
  EXPECT_EQ(rows[1].first, "a.json:row 2");
  EXPECT_THAT(error("b.json", R"({"a": [1, 2], "b": ["x"]})"), HasSubstr("column 'b' of type array with 1 values"));
  EXPECT_THAT(error("c.json", R"({"a": 1})"), HasSubstr("got column 'a' of type number"));
}

TEST_F(Rows, JsonLinesInAJsonFileNameTheFormat) {
  const std::string remedy = "; try data.train: {path: …, format: jsonl} for one object per line";
  EXPECT_EQ(error("a.json", "{\"a\": 1}\n{\"a\": 2}\n"),
            "[a.json:2] expected one JSON array of objects, or one object of arrays, got another value after the first "
            "line's" +
                remedy);
  EXPECT_THAT(error("a.json", "{\"a\": \"x\"}\n"),
              HasSubstr("'a' of type string with 1 values beside 1 rows" + remedy));
  EXPECT_EQ(read("a.json", "{\"a\": 1}\n{\"a\": 2}\n", "jsonl").size(), 2u);
  EXPECT_EQ(read("a.json", "{\"a\": [1],\n\"b\": [2]}\n").size(), 1u);
}

// Ground truths are compared as text: one that would be written in another way must be text.
TEST_F(Rows, NumbersThatWouldChangeAreRefused) {
  EXPECT_EQ(error("a.jsonl", "{\"a\": 1}\n{\"answer\": 12345678901234567890123}\n"),
            "[a.jsonl:2 column answer] expected a number that is kept as it is written, got 12345678901234567890123, "
            "which would become 1.2345678901234568e+22; try quotes around it, \"answer\": \"12345678901234567890123\"");
  for (const std::string key : {"answer", "ground_truth", "solution", "label"}) {
    EXPECT_THAT(error("a.jsonl", "{\"" + key + "\": 1.10}"), HasSubstr("got 1.10, which would become 1.1;")) << key;
  }
  EXPECT_THAT(error("a.json", "[{\"a\": 1},\n{\"reward_model\": {\"ground_truth\": [1, 2.50]}}]"),
              HasSubstr("[a.json:2 column ground_truth]"));
  EXPECT_THAT(error("a.json", "{\"answer\": [1.5, 1E3]}"), HasSubstr("got 1E3, which would become 1000.0;"));
  EXPECT_THAT(error("a.jsonl", "{\"n\": [-9223372036854775809]}"), HasSubstr("column n]"));
  const auto rows = read("a.jsonl", R"({"answer": [0, -1.5, 1e-05, 18446744073709551615, -9223372036854775808], )"
                                    R"("score": 1.10, "text": "\"answer\": 1.10", "label": "2.50"})");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].second["answer"].dump(), "[0,-1.5,1e-05,18446744073709551615,-9223372036854775808]");
  EXPECT_EQ(rows[0].second["label"], "2.50");
}

TEST_F(Rows, PlainTextIsOneRow) {
  const auto rows = read("a.txt", "one\ntwo\n");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].second, json({{"text", "one\ntwo\n"}}));
}

TEST_F(Rows, TheFirstRowAlone) {
  const auto first = [&](const std::string& name, const std::string& content) {
    host::write_file_atomically(directory_.path(name), content);
    return first_row(directory_.path(name));
  };
  EXPECT_EQ(first("a.jsonl", "\n{\"a\": 1}\nno JSON"), json({{"a", 1}}));
  EXPECT_EQ(first("a.json", R"([{"a": 1}, {"a": 2}])"), json({{"a", 1}}));
  EXPECT_EQ(first("a.jsonl", "\n"), std::nullopt);
  EXPECT_THROW(first_row(directory_.path("none.jsonl")), base::InputError);
}

TEST_F(Rows, MalformedJsonNamesFileAndLine) {
  EXPECT_THAT(error("a.jsonl", "{\"a\": 1}\n{\"a\": }\n"), HasSubstr("[a.jsonl:2] expected well-formed JSON"));
  EXPECT_THAT(error("a.jsonl", "{\"a\": 1}\n[1]\n"),
              HasSubstr("[a.jsonl:2] expected an object with columns, got array"));
  EXPECT_THAT(error("a.json", "[\n{\"a\": 1},\n{\"a\" 2}]"), HasSubstr("[a.json:3] expected well-formed JSON"));
  EXPECT_EQ(error("a.json", "[{\"a\": 1},\n\n"),
            "[a.json:3] expected ',' or ']' after an element, got the end of the file");
  EXPECT_EQ(error("a.json", "[{}\n,]"), "[a.json:2] expected an element, got ']'");
  EXPECT_EQ(error("a.json", "[{}]\n{}"), "[a.json:2] expected nothing after the array, got '{'");
  EXPECT_EQ(error("a.json", "["), "[a.json:1] expected ']', got the end of the file");
  EXPECT_THAT(error("a.json", "[{\"a\": \"open}]"), HasSubstr("the end of the file"));
}

TEST_F(Rows, DeeplyNestedJsonNamesFileAndLine) {
  const std::string deep = "{\"a\": " + std::string(200000, '[') + std::string(200000, ']') + "}";
  const std::string message = " expected JSON of at most 200 levels, got deeper nesting";
  EXPECT_EQ(error("a.jsonl", "{\"a\": 1}\n" + deep + "\n"), "[a.jsonl:2]" + message);
  EXPECT_EQ(error("a.json", "[\n{\"a\": 1},\n" + deep + "]"), "[a.json:3]" + message);
  EXPECT_EQ(error("a.json", deep), "[a.json:1]" + message);
}

TEST_F(Rows, UnknownFormatAndMissingFile) {
  EXPECT_THAT(error("a.data", "x"),
              AllOf(HasSubstr("expected a .jsonl, .json, .parquet or .txt file, got a .data file"),
                    HasSubstr("a.data, format: jsonl} if it holds one JSON object a line")));
  EXPECT_THAT(error("a.jsonl.gz", "x"),
              AllOf(HasSubstr("got a .gz file; try decompressing it: gunzip -k "), HasSubstr("a.jsonl.gz")));
  EXPECT_THAT(error("a.xlsx", "x"), AllOf(HasSubstr("got a .xlsx file; try converting it: python3 -c \"import pandas"),
                                          HasSubstr("a.jsonl', orient='records', lines=True)")));
  EXPECT_THAT(error("a.csv", "x"),
              AllOf(HasSubstr("got a .csv file; try converting it: python3 -c \"import csv, json; "),
                    HasSubstr("a.csv', newline=''))]\" > "), HasSubstr("a.jsonl")));
  EXPECT_EQ(read("a.data", "{\"a\": 1}\n", "jsonl").size(), 1u);
  EXPECT_EQ(message_of<base::InputError>([] { read_rows("/nowhere/a.jsonl", "auto", {}); }),
            "[data /nowhere/a.jsonl] expected a file, got none there");
}

TEST_F(Rows, BadRowsArePassedOver) {
  const std::string rows = "{\"a\": 1}\n{\"a\": \n[2]\n{\"answer\": 1.10}\n{\"a\": 3}\n";
  host::write_file_atomically(directory_.path("a.jsonl"), rows);
  std::vector<std::string> bad;
  std::vector<json> good;
  read_rows(
      directory_.path("a.jsonl"), "auto", [&](const RowLocation&, Row&& row) { good.push_back(std::move(row)); },
      [&](const std::string& error) { bad.push_back(error); });
  EXPECT_EQ(good, (std::vector<json>{{{"a", 1}}, {{"a", 3}}}));
  ASSERT_EQ(bad.size(), 3u);
  EXPECT_THAT(bad[0], HasSubstr("a.jsonl:2] expected well-formed JSON"));
}

// Whether this build has the Parquet reader.
bool has_parquet() {
  try {
    read_rows(testdata("kinds.parquet"), "auto", [](const RowLocation&, Row&&) {});
    return true;
  } catch (const base::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("`pip install pyarrow`"));
    return false;
  }
}

TEST(Parquet, EveryKindOfColumn) {
  if (!has_parquet()) GTEST_SKIP() << "built without the Parquet reader";
  std::vector<Row> rows;
  read_rows(testdata("kinds.parquet"), "auto", [&](const RowLocation& location, Row&& row) {
    EXPECT_EQ(location.text(), testdata("kinds.parquet") + ":row " + std::to_string(rows.size() + 1));
    rows.push_back(std::move(row));
  });
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(json(rows[0]), json::parse(R"({"prompt": [{"role": "user", "content": "one"}], "data_source": "a",
      "reward_model": {"style": "rule", "ground_truth": {"target": 98, "numbers": [1, 2]}}, "weight": 0.5,
      "flag": true, "small": 1, "big": 18446744073709551615, "day": "2024-02-29",
      "pairs": [{"key": "k", "value": 1}], "fixed": [1, 2], "price": "1.50"})"));
  EXPECT_EQ(rows[1]["prompt"][0]["content"], "two ü");
  EXPECT_EQ(rows[1]["weight"], nullptr);
  EXPECT_EQ(rows[1]["small"], -2);
  EXPECT_EQ(rows[1]["fixed"], json({3, 4}));
  EXPECT_EQ(rows[2]["data_source"], "a");
  EXPECT_EQ(rows[2]["prompt"], nullptr);
  EXPECT_EQ(rows[2]["weight"], 1e300);
}

// An image's bytes are kept, and what is written as JSON later (samples, messages between processes) can be.
TEST(Parquet, BytesThatAreNoTextAreBase64) {
  if (!has_parquet()) GTEST_SKIP() << "built without the Parquet reader";
  std::vector<Row> rows;
  read_rows(testdata("bytes.parquet"), "auto", [&](const RowLocation&, Row&& row) { rows.push_back(std::move(row)); });
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(json(rows[0]), json::parse(R"({"prompt": "one", "blob": "plain ü", "large": {"base64": "/wAB"},
      "fixed": {"base64": "gIE="}, "image": {"bytes": {"base64": "iVBORw0KGgo="}, "path": "a.png"}})"));
  EXPECT_EQ(json(rows[1]), json::parse(R"({"prompt": "two", "blob": {"base64": "w/8="}, "large": "", "fixed": "ab",
      "image": {"bytes": null, "path": "b.png"}})"));
  for (const Row& row : rows) EXPECT_EQ(json::parse(row.dump()), json(row));
}

TEST(Parquet, NumbersThatAreNotFiniteAreMissing) {
  if (!has_parquet()) GTEST_SKIP() << "built without the Parquet reader";
  json answers = json::array(), scores = json::array();
  read_rows(testdata("not_finite.parquet"), "auto", [&](const RowLocation&, Row&& row) {
    answers.push_back(json(row["answer"]));
    scores.push_back(json(row["score"]));
  });
  EXPECT_EQ(answers, json({0.5, nullptr, nullptr, nullptr}));
  EXPECT_EQ(scores, json({nullptr, 1.5, nullptr, 2.0}));
}

TEST_F(Rows, BrokenParquetIsAnError) {
  if (!has_parquet()) GTEST_SKIP() << "built without the Parquet reader";
  EXPECT_THAT(error("a.parquet", "PAR1 not at all"), HasSubstr("expected a Parquet file that can be read"));
  std::string cut = host::read_file(testdata("kinds.parquet"));
  cut.resize(cut.size() / 2);
  EXPECT_THAT(error("b.parquet", cut), HasSubstr("expected a Parquet file that can be read"));
}

}  // namespace
}  // namespace collimate::text
