#include "collimate/text/rows.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/host/file_io.h"
#include "collimate/host/mapped_file.h"
#include "collimate/text/arrow/arrow_files.h"
#include "collimate/text/data_files.h"
#include "collimate/text/data_formats.h"
#include "collimate/text/delimited.h"
#include "collimate/text/files.h"
#include "collimate/text/json_elements.h"
#include "collimate/text/json_numbers.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

using nlohmann::json;

constexpr const char* kByteOrderMark = "\xEF\xBB\xBF";

std::string without_mark(std::string line) {
  if (line.starts_with(kByteOrderMark)) line.erase(0, 3);
  return line;
}

void refuse_changed_numbers(std::string_view text, const RowLocation& location) {
  const std::optional<ChangedNumber> number = find_changed_number(text);
  if (!number) return;
  throw base::InputError(base::expectation(
      fmt::format("{} column {}", location.text(), number->key), "a number that is kept as it is written",
      fmt::format("{}, which would become {}", number->written, number->kept),
      fmt::format("quotes around it, \"{}\": \"{}\"", number->key, number->written)));
}

Row parse_row(std::string_view text, const RowLocation& location) {
  Row row = base::parse_ordered_json(text, location.file, location.line);
  refuse_changed_numbers(text, location);
  if (!row.is_object()) {
    const bool rows = row.is_array() && !row.empty() && row.front().is_object();
    throw base::InputError(
        base::expectation(location.text(), "an object with columns", fmt::format("a JSON {}", row.type_name()),
                          rows ? "the ending .json, as the file is one list of rows"
                               : "{\"prompt\": …, …}; collimate help data shows the shapes of rows"));
  }
  return row;
}

// Gives the row of one line or element to `sink`, or the reason why there is none to `bad`.
void pass_on(std::string_view text, const RowLocation& location, const RowSink& sink, const BadRowSink& bad) {
  Row row;
  try {
    row = parse_row(text, location);
  } catch (const base::InputError& error) {
    if (!bad) throw;
    return bad(error.what());
  }
  sink(location, std::move(row));
}

// Reads up to `most` rows.
void read_jsonl(std::istream& in, const std::string& path, const RowSink& sink, const BadRowSink& bad, int64_t most) {
  RowLocation location{path, 0, 0};
  std::string line;
  while (location.row < most && std::getline(in, line)) {
    ++location.line;
    if (location.line == 1) line = without_mark(std::move(line));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    pass_on(line, location, sink, bad);
    ++location.row;
  }
}

constexpr const char* kLinesRemedy = "data.train: {path: …, format: jsonl} for one object per line";

// Throws InputError for JSON lines under the name of a JSON file: a value that ends with its line, and more after it.
void refuse_lines(const std::string& path, std::string_view content) {
  const size_t begin = content.find_first_not_of(" \t\r\n"), end = content.find('\n', begin);
  if (end == std::string::npos || content.find_first_not_of(" \t\r\n", end) == std::string::npos) return;
  if (!json::accept(content.substr(begin, end - begin))) return;
  throw base::InputError(base::expectation(fmt::format("{}:{}", path, line_at(content, end + 1)),
                                           "one JSON array of objects, or one object of arrays",
                                           "another value after the first line's", kLinesRemedy));
}

// Reads {"column": [values…], …}, where all lists are of one length.
void read_columns(const std::string& path, std::string_view content, const RowSink& sink) {
  refuse_lines(path, content);
  const Row columns = parse_row(content, {path, 0, 1});
  if (columns.empty()) return;
  const size_t rows = columns.begin()->size();
  for (const auto& [name, values] : columns.items()) {
    if (!values.is_array() || values.size() != rows) {
      throw base::InputError(base::expectation(path, "an array of objects, or an object of arrays of one length",
                                               fmt::format("column '{}' of type {} with {} values beside {} rows", name,
                                                           values.type_name(), values.size(), rows),
                                               kLinesRemedy));
    }
  }
  for (size_t i = 0; i < rows; ++i) {
    Row row = Row::object();
    for (const auto& [name, values] : columns.items()) row[name] = values[i];
    sink({path, static_cast<int64_t>(i), 0}, std::move(row));
  }
}

std::string content_of(const std::string& path) {
  return is_compressed(path) ? decompressed(path) : host::read_file(path);
}

// Has the whole content of a file, mapped where the file is not compressed.
class WholeFile {
 public:
  explicit WholeFile(const std::string& path) {
    if (is_compressed(path)) {
      text_ = decompressed(path);
    } else {
      file_.emplace(path);
      bytes_ = file_->bytes();
    }
  }

  std::string_view text() const {
    return file_ ? std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size()) : text_;
  }
  // Gives the memory of the content ahead of `end` back, from time to time.
  void done_with(size_t end) {
    constexpr size_t kOften = size_t{4} << 20;
    if (!file_ || end < given_back_ + kOften) return;
    host::forget_pages(bytes_.subspan(given_back_, end - given_back_));
    given_back_ = end;
  }

 private:
  std::optional<host::MappedFile> file_;
  std::span<const std::byte> bytes_;
  std::string text_;
  size_t given_back_ = 0;
};

std::unique_ptr<std::istream> open_text(const std::string& path) {
  if (is_compressed(path)) return open_compressed(path);
  return std::make_unique<std::ifstream>(path, std::ios::binary);
}

void read_json(const std::string& path, const RowSink& sink, const BadRowSink& bad) {
  WholeFile file(path);
  const size_t mark = file.text().starts_with(kByteOrderMark) ? 3 : 0;
  const std::string_view content = file.text().substr(mark);
  const size_t first = content.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return;
  if (content[first] != '[') return read_columns(path, content, sink);
  RowLocation location{path, 0, 1};
  size_t counted = 0;
  for_each_element(path, content, [&](size_t begin, size_t end) {
    location.line += std::count(content.begin() + static_cast<std::ptrdiff_t>(counted),
                                content.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
    counted = begin;
    pass_on(content.substr(begin, end - begin), location, sink, bad);
    file.done_with(mark + begin);
    ++location.row;
  });
}

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

std::string remedy(const std::string& path, const std::string& ending) {
  static const std::map<std::string, std::string> kCommands = {{".xz", "unxz -k"},     {".zip", "unzip"},
                                                               {".gz", "gunzip -k"},   {".zst", "unzstd -k"},
                                                               {".bz2", "bunzip2 -k"}, {".lz4", "unlz4 -k"}};
  if (const auto command = kCommands.find(ending); command != kCommands.end())
    return fmt::format("decompressing it: {} {}", command->second, path);
  if (ending == ".xlsx" || ending == ".xls")
    return fmt::format(
        "converting it: python3 -c \"import pandas; pandas.read_excel('{}').to_json('{}', "
        "orient='records', lines=True)\"",
        path, std::filesystem::path(path).replace_extension(".jsonl").string());
  return fmt::format("{{path: {}, format: jsonl}} if it holds one JSON object a line", path);
}

[[noreturn]] void refuse_ending(const std::string& path, const std::string& expected) {
  const std::string ending = std::filesystem::path(path).extension().string();
  throw base::InputError(base::expectation("data " + path, expected, ending.empty() ? "''" : "a " + ending + " file",
                                           remedy(path, ending)));
}

DataFormat chosen_format(const std::string& path, const std::string& format) {
  const std::optional<DataFormat> chosen = format == "auto" ? format_of(path) : format_named(format);
  if (chosen) return *chosen;
  if (format == "auto") refuse_ending(path, fmt::format("a {} file", format_endings()));
  throw base::InputError(
      base::expectation("data " + path, "format " + format_names(), "'" + format + "'", remedy(path, "")));
}

// Reads the whole file as one row.
void read_plain(const std::string& path, const RowSink& sink) {
  std::string content = content_of(path);
  if (!is_valid_utf8(content))
    throw base::InputError(base::expectation(path, "a text in UTF-8", "other bytes", utf8_remedy(path)));
  sink({path, 0, 1}, {{"text", std::move(content)}});
}

// Reads one file, and of JSON lines no more than `most` rows.
void read_file(const std::string& path, const std::string& format, const RowSink& sink, const BadRowSink& bad,
               int64_t most) {
  host::open_for_reading(path);  // refuses a file that would have to be waited for
  const DataFormat chosen = chosen_format(path, format);
  switch (chosen) {
    case DataFormat::kLines:
      return read_jsonl(*open_text(path), path, sink, bad, most);
    case DataFormat::kJson:
      return read_json(path, sink, bad);
    case DataFormat::kCsv:
    case DataFormat::kTsv:
      return read_delimited(*open_text(path), path, chosen == DataFormat::kTsv, sink, bad);
    case DataFormat::kText:
      return read_plain(path, sink);
    case DataFormat::kParquet:
    case DataFormat::kArrow:
      if (is_compressed(path)) refuse_ending(path, "a file of that format that is not compressed as a whole");
      return (chosen == DataFormat::kParquet ? read_parquet : read_arrow)(path, sink);
  }
}

}  // namespace

std::string RowLocation::text() const {
  return line > 0 ? fmt::format("{}:{}", file, line) : fmt::format("{}:row {}", file, row + 1);
}

void read_rows(const std::string& path, const std::string& format, const RowSink& sink, const BadRowSink& bad) {
  for (const std::string& file : data_files(path)) read_file(file, format, sink, bad, kAll);
}

std::optional<Row> first_row(const std::string& path) {
  std::optional<Row> first;
  const auto take = [&](const RowLocation&, Row&& row) {
    if (!first) first = std::move(row);
  };
  for (const std::string& file : data_files(path))
    if (!first) read_file(file, "auto", take, {}, 1);
  return first;
}

int64_t count_rows(const std::string& path, int64_t most) {
  int64_t rows = 0;
  for (const std::string& file : data_files(path))
    if (rows < most)
      read_file(
          file, "auto", [&](const RowLocation&, Row&&) { ++rows; }, {}, most - rows);
  return std::min(rows, most);
}

}  // namespace collimate::text
