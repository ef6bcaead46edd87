#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace collimate::text {

using Row = nlohmann::ordered_json;  // an object: column name to value, in the order written, as templates show it

// A RowLocation says where a row came from. `line` is 1-based, 0 where the format has no lines (Parquet); `row` is
// 0-based, and what a person reads of it 1-based.
struct RowLocation {
  std::string file;
  int64_t row = 0;
  int64_t line = 0;
  // "train.jsonl:12" or "train.parquet:row 12".
  std::string text() const;
};

using RowSink = std::function<void(const RowLocation&, Row&&)>;
using BadRowSink = std::function<void(const std::string& error)>;

// Reads the files that `path` names (see data_files.h). `format`: "auto" (by the ending, see
// data_formats.h, and .gz .zst .bz2 .lz4 behind each but .parquet and .arrow) or the name of one there; a table's cells
// are texts (see delimited.h), a text is one row {"text": …} per file. JSON may be an array of objects or an
// object of arrays of equal length. Throws InputError: missing file, unknown format, malformed JSON (with the line), a
// row that is no object, a number that would not be kept as written (see json_numbers.h), a Parquet, Arrow or
// compressed file in a build without their reader (says how to get it). A row that cannot be read by itself goes to
// `bad` and is passed over where that is given.
void read_rows(const std::string& path, const std::string& format, const RowSink& sink, const BadRowSink& bad = {});

// Gives the number of rows, or `most` where there are as many or more, which are not read then from files of JSON
// lines. Throws as read_rows.
int64_t count_rows(const std::string& path, int64_t most);

// Reads the first row alone of a file of JSON lines, of another format the whole file; nothing where there is none.
// Throws as read_rows.
std::optional<Row> first_row(const std::string& path);

}  // namespace collimate::text
