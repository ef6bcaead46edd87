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

// Memory of what was read is given back every 4 MiB.
TEST_F(Rows, LongJsonArraysAreReadToTheirEnd) {
  std::string content = "\xEF\xBB\xBF[";
  for (int i = 0; i < 9000; ++i)
    content += fmt::format("{}{{\"a\": {}, \"b\": \"{}\"}}", i == 0 ? "" : ",\n", i, std::string(1000, 'b'));
  const auto rows = read("a.json", content + "]\n");
  ASSERT_EQ(rows.size(), 9000U);
  for (size_t i = 0; i < rows.size(); i += 250) {
    EXPECT_EQ(rows[i].second["a"], i);
    EXPECT_EQ(rows[i].second["b"].get<std::string>(), std::string(1000, 'b'));
    EXPECT_EQ(rows[i].first, fmt::format("a.json:{}", i + 1));
  }
  EXPECT_EQ(error("b.json", content), "[b.json:9000] expected ',' or ']' after an element, got the end of the file");
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
  EXPECT_THAT(message_of<base::InputError>([&] { read("b.txt", "caf\xE9\n"); }),
              HasSubstr("b.txt] expected a text in UTF-8, got other bytes; try iconv -f LATIN1 -t UTF-8 "));
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
              HasSubstr("[a.jsonl:2] expected an object with columns, got a JSON array; try {\"prompt\": …, …}"));
  EXPECT_THAT(
      error("b.jsonl", "[{\"a\": 1}]\n"),
      HasSubstr("[b.jsonl:1] expected an object with columns, got a JSON array; try the ending .json, as the "));
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
              AllOf(HasSubstr("expected a .jsonl, .json, .csv, .tsv, .parquet, .arrow or .txt file, got a .data file"),
                    HasSubstr("a.data, format: jsonl} if it holds one JSON object a line")));
  EXPECT_THAT(error("a.jsonl.xz", "x"),
              AllOf(HasSubstr("got a .xz file; try decompressing it: unxz -k "), HasSubstr("a.jsonl.xz")));
  EXPECT_THAT(error("a.xlsx", "x"), AllOf(HasSubstr("got a .xlsx file; try converting it: python3 -c \"import pandas"),
                                          HasSubstr("a.jsonl', orient='records', lines=True)")));
  EXPECT_THAT(message_of<base::InputError>([&] { read("a.jsonl", "", "yaml"); }),
              HasSubstr("expected format auto, jsonl, json, csv, tsv, parquet, arrow or text, got 'yaml'"));
  EXPECT_EQ(read("a.data", "{\"a\": 1}\n", "jsonl").size(), 1u);
  EXPECT_EQ(message_of<base::InputError>([] { read_rows("/nowhere/a.jsonl", "auto", {}); }),
            "[data /nowhere/a.jsonl] expected a file, got nothing of that name; try another path: there is no "
            "directory /nowhere");
}

TEST_F(Rows, TablesKeepTheirCellsAsTexts) {
  const auto rows =
      read("a.csv",
           "\xEF\xBB\xBF,prompt,\"an, \"\"answer\"\"\"\r\n0,\"two\nlines, \"\"quoted\"\"\",007\r\n\r\n1,ü,"
           "\r\n2,\"\",x\"y");
  ASSERT_EQ(rows.size(), 3U);
  const Row first = {{"Unnamed: 0", "0"}, {"prompt", "two\nlines, \"quoted\""}, {"an, \"answer\"", "007"}};
  EXPECT_EQ(rows[0], std::make_pair(std::string("a.csv:2"), first));
  const Row missing = {{"Unnamed: 0", "1"}, {"prompt", "ü"}, {"an, \"answer\"", nullptr}};
  EXPECT_EQ(rows[1], std::make_pair(std::string("a.csv:5"), missing));
  const Row empty = {{"Unnamed: 0", "2"}, {"prompt", ""}, {"an, \"answer\"", "x\"y"}};
  EXPECT_EQ(rows[2], std::make_pair(std::string("a.csv:6"), empty));
}

TEST_F(Rows, TheFirstLineOfATableSaysItsDelimiter) {
  const Row row = {{"a", "1,5"}, {"b", "x;y"}};
  EXPECT_EQ(read("a.csv", "a;b\n1,5;\"x;y\"\n")[0].second, row);
  EXPECT_EQ(read("a.tsv", "a\tb\n1,5\tx;y\n")[0].second, row);
  EXPECT_EQ(read("b.csv", "a\tb\n1,5\tx;y\n")[0].second, row);
  const Row alone = {{"a,b", "1"}};
  EXPECT_EQ(read("b.tsv", "a,b\n1\n")[0].second, alone);
  EXPECT_TRUE(read("c.csv", "a,b\n").empty());
}

TEST_F(Rows, BrokenTablesNameTheirLine) {
  EXPECT_EQ(
      error("a.csv", "a,b\n1,2\n1,2,3\n"),
      "[a.csv:3] expected 2 cells, as the first line has, got 3; try quotes around a text that has a delimiter in "
      "it");
  EXPECT_EQ(error("a.csv", "a,b\n1,2\n1,\"2\n\n"),
            "[a.csv:3] expected a quote that ends the cell, got the end of the file");
  EXPECT_EQ(error("a.csv", "a,b\n\"1\"x,2\n"),
            "[a.csv:2] expected a delimiter or the end of the line after a cell in quotes, got 'x'; try two quotes, "
            "\"\", for one that belongs to the text");
  EXPECT_EQ(error("a.csv", "a,b,a\n"), "[a.csv:1] expected each column's name once, got 'a' twice");
  EXPECT_THAT(error("a.csv", "a,b\n1,\xE4\n"),
              HasSubstr("[a.csv:2 column b] expected UTF-8, got other bytes; try iconv"));
  EXPECT_THAT(error("a.csv", "\xFF\xFE\x61"),
              HasSubstr("[a.csv] expected a table in UTF-8, got UTF-16; try saving it"));
}

TEST_F(Rows, DirectoriesAndPatternsAreReadByName) {
  host::write_file_atomically(directory_.path("b.jsonl"), "{\"a\": 3}\n{\"a\": 4}\n");
  host::write_file_atomically(directory_.path("a.csv"), "a\n1\n2\n");
  host::write_file_atomically(directory_.path("README.md"), "# of data");
  const auto values = [&](const std::string& path) {
    std::string found;
    read_rows(path, "auto", [&](const RowLocation&, Row&& row) { found += row.at("a").dump(); });
    return found;
  };
  EXPECT_EQ(values(directory_.path("*.jsonl")), "34");
  EXPECT_EQ(values(directory_.path("[ab].*")), "\"1\"\"2\"34");
  EXPECT_EQ(count_rows(directory_.path("[ab].*"), 3), 3);
  EXPECT_EQ(count_rows(directory_.path("[ab].*"), 9), 4);
  EXPECT_EQ(first_row(directory_.path("[ab].*")), Row({{"a", "1"}}));
  EXPECT_EQ(
      message_of<base::InputError>([&] { values(directory_.path()); }),
      fmt::format("[data {0}] expected data files of one format in the directory, got {0}/a.csv and {0}/b.jsonl; try "
                  "a pattern, {0}/*.jsonl",
                  directory_.path()));
  std::filesystem::rename(directory_.path("a.csv"), directory_.path("a.csv.old"));
  host::write_file_atomically(directory_.path("a.jsonl"), "{\"a\": 2}\n");
  EXPECT_EQ(values(directory_.path()), "234");
  EXPECT_THAT(message_of<base::InputError>([&] { values(directory_.path("*.json")); }),
              HasSubstr("expected files that match the pattern, got none"));
  std::filesystem::create_directory(directory_.path("none"));
  EXPECT_THAT(
      message_of<base::InputError>([&] { values(directory_.path("none")); }),
      HasSubstr(
          "expected data files in the directory (.jsonl, .json, .csv, .tsv, .parquet, .arrow or .txt), got none"));
  std::filesystem::create_directories(directory_.path("none/train"));
  host::write_file_atomically(directory_.path("none/train/x.jsonl"), "{}");
  EXPECT_THAT(message_of<base::InputError>([&] { values(directory_.path("none")); }),
              HasSubstr("none; try " + directory_.path("none/train")));
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
bool has_arrow() {
  try {
    read_rows(testdata("kinds.parquet"), "auto", [](const RowLocation&, Row&&) {});
    return true;
  } catch (const base::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("`pip install pyarrow`"));
    return false;
  }
}

TEST(Parquet, EveryKindOfColumn) {
  if (!has_arrow()) GTEST_SKIP() << "built without the Parquet reader";
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
  if (!has_arrow()) GTEST_SKIP() << "built without the Parquet reader";
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
  if (!has_arrow()) GTEST_SKIP() << "built without the Parquet reader";
  json answers = json::array(), scores = json::array();
  read_rows(testdata("not_finite.parquet"), "auto", [&](const RowLocation&, Row&& row) {
    answers.push_back(json(row["answer"]));
    scores.push_back(json(row["score"]));
  });
  EXPECT_EQ(answers, json({0.5, nullptr, nullptr, nullptr}));
  EXPECT_EQ(scores, json({nullptr, 1.5, nullptr, 2.0}));
}

TEST_F(Rows, BrokenParquetIsAnError) {
  if (!has_arrow()) GTEST_SKIP() << "built without the Parquet reader";
  EXPECT_THAT(error("a.parquet", "PAR1 not at all"), HasSubstr("expected a Parquet file that can be read"));
  std::string cut = host::read_file(testdata("kinds.parquet"));
  cut.resize(cut.size() / 2);
  EXPECT_THAT(error("b.parquet", cut), HasSubstr("expected a Parquet file that can be read"));
}

TEST_F(Rows, ArrowFilesOfBothFormsAreReadAsParquet) {
  if (!has_arrow()) GTEST_SKIP() << "built without the Arrow reader";
  const auto rows_of_file = [](const std::string& path) {
    std::vector<std::string> rows;
    read_rows(path, "auto", [&](const RowLocation& location, Row&& row) {
      EXPECT_EQ(location.row, std::ssize(rows));
      rows.push_back(row.dump());
    });
    return rows;
  };
  const std::vector<std::string> parquet = rows_of_file(testdata("kinds.parquet"));
  EXPECT_EQ(rows_of_file(testdata("kinds.arrow")), parquet);
  EXPECT_EQ(rows_of_file(testdata("kinds_indexed.arrow")), parquet);
  for (const char* name : {"kinds.arrow", "kinds_indexed.arrow"}) {
    const std::string whole = host::read_file(testdata(name));
    EXPECT_THAT(error("cut.arrow", whole.substr(0, whole.size() - 700)),
                HasSubstr("expected an Arrow file that can be read"));
  }
}

// Hugging Face's `datasets` writes these by save_to_disk: the order of the files is that of state.json.
TEST_F(Rows, ASavedDatasetIsADirectory) {
  if (!has_arrow()) GTEST_SKIP() << "built without the Arrow reader";
  for (const char* name : {"data-0.arrow", "data-1.arrow"})
    host::write_file_atomically(directory_.path(name), host::read_file(testdata("kinds.arrow")));
  host::write_file_atomically(directory_.path("dataset_info.json"), "{}");
  host::write_file_atomically(directory_.path("state.json"),
                              R"({"_data_files": [{"filename": "data-1.arrow"}, {"filename": "data-0.arrow"}]})");
  std::vector<std::string> places;
  read_rows(directory_.path(), "auto", [&](const RowLocation& location, Row&&) { places.push_back(location.text()); });
  ASSERT_EQ(places.size(), 6U);
  EXPECT_EQ(places[0], directory_.path("data-1.arrow") + ":row 1");
  EXPECT_EQ(places[3], directory_.path("data-0.arrow") + ":row 1");
}

TEST_F(Rows, CompressedFilesAreReadWhole) {
  if (!has_arrow()) GTEST_SKIP() << "built without the readers of compressed files";
  for (const std::string ending : {"gz", "bz2", "zst", "lz4"}) {
    const std::string whole = host::read_file(testdata("compressed/rows.jsonl." + ending));
    const auto rows = read("a.jsonl." + ending, whole);
    ASSERT_EQ(rows.size(), 3U) << ending;
    EXPECT_EQ(rows[2].second, Row({{"a", 3}}));
    EXPECT_EQ(rows[2].first, "a.jsonl." + ending + ":3");
    EXPECT_THAT(error("b.jsonl." + ending, whole.substr(0, whole.size() - 6)),
                HasSubstr("expected a whole file compressed by"))
        << ending;
    EXPECT_THAT(error("c.jsonl." + ending, "{}"), HasSubstr("expected a whole file compressed by")) << ending;
  }
  int64_t next = 0;  // rows of several pieces, of which some end within a row
  read_rows(testdata("compressed/long.jsonl.gz"), "auto", [&](const RowLocation& location, Row&& row) {
    EXPECT_EQ(row["a"], next);
    EXPECT_EQ(row["text"].get<std::string>().size(), 1000U);
    EXPECT_EQ(location.line, ++next);
  });
  EXPECT_EQ(next, 2500);
  EXPECT_EQ(count_rows(testdata("compressed/long.jsonl.gz"), 2000), 2000);
  EXPECT_THAT(
      error("a.parquet.gz", "x"),
      HasSubstr("a file of that format that is not compressed as a whole, got a .gz file; try decompressing it: "
                "gunzip -k "));
}

}  // namespace
}  // namespace collimate::text
