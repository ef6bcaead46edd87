#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace collimate::text {

using Row = nlohmann::ordered_json;  // an object: column name to value, in the order written, as templates show it

// Says where a row came from. `line` is 1-based, 0 where the format has no lines (Parquet); `row` is 0-based, but
// text() shows it 1-based.
struct RowLocation {
  std::string file;
  int64_t row = 0;
  int64_t line = 0;
  // Returns "train.jsonl:12" or "train.parquet:row 12".
  std::string text() const;
};

using RowSink = std::function<void(const RowLocation&, Row&&)>;
using BadRowSink = std::function<void(const std::string& error)>;

// Reads the files that `path` names (see data_files.h). `format` is "auto" (the ending tells it, which .gz, .zst, .bz2
// or .lz4 may follow but for .parquet and .arrow) or the name of a format in data_formats.h. A table's cells are texts
// (see delimited.h); a text file is one row {"text": …}. JSON may be an array of objects or an object of arrays of
// equal length. Throws InputError for a missing file, an unknown format, malformed JSON (with the line), a row that is
// no object, a number that would not be kept as written (see json_numbers.h), and a Parquet, Arrow or compressed file
// in a build without its reader (which says how to get it). A row that cannot be read by itself goes to `bad`, where
// that is given, and is passed over.
void read_rows(const std::string& path, const std::string& format, const RowSink& sink, const BadRowSink& bad = {});

// Returns the number of rows, at most `most`: rows beyond these are not read from files of JSON lines. Throws as
// read_rows.
int64_t count_rows(const std::string& path, int64_t most);

// Returns the first row, nothing where there is none. Of a file of JSON lines it reads that row alone, of another
// format the whole file. Throws as read_rows.
std::optional<Row> first_row(const std::string& path);

}  // namespace collimate::text
