#include "collimate/text/delimited.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

using base::expectation;
using base::InputError;

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

// A cell holds nothing, a missing value, where it is empty and stood in no quotes.
using Cell = std::optional<std::string>;

// Reads the cells of one row after the other.
class CellReader {
 public:
  CellReader(std::istream& in, std::string path, char delimiter)
      : in_(in), path_(std::move(path)), delimiter_(delimiter) {}

  // Returns the line on which the next row begins.
  int64_t line() const { return line_; }
  void skip(int64_t lines) { line_ += lines; }

  // Returns the cells of the next row that is not an empty line; none at the end.
  std::vector<Cell> next() {
    while (in_.peek() == '\n' || in_.peek() == '\r') next_character();
    std::vector<Cell> cells;
    if (in_.peek() == std::istream::traits_type::eof()) return cells;
    begin_ = line_;
    do {
      cells.push_back(cell());
    } while (ended_by_ == delimiter_);
    return cells;
  }
  RowLocation location(int64_t row) const { return {path_, row, begin_}; }

 private:
  int next_character() {
    const int character = in_.get();
    if (character == '\n') ++line_;
    return character;
  }

  Cell cell() {
    Cell out;
    if (in_.peek() == '"') {
      out = quoted();
      end(next_character());
      return out;
    }
    std::string text;
    int character = next_character();
    for (; !ends(character); character = next_character()) text += static_cast<char>(character);
    end(character);
    if (!text.empty()) out = std::move(text);
    return out;
  }

  bool ends(int character) const {
    return character == delimiter_ || character == '\n' || character == std::istream::traits_type::eof() ||
           (character == '\r' && (in_.peek() == '\n' || in_.peek() == std::istream::traits_type::eof()));
  }

  // Takes the character that ends a cell, and both of a line end.
  void end(int character) {
    if (character == '\r' && in_.peek() == '\n') character = next_character();
    if (!ends(character) && character != '\r')
      throw InputError(expectation(location(0).text(), "a delimiter or the end of the line after a cell in quotes",
                                   "'" + std::string(1, static_cast<char>(character)) + "'",
                                   "two quotes, \"\", for one that belongs to the text"));
    ended_by_ = character;
  }

  std::string quoted() {
    next_character();
    std::string text;
    while (true) {
      const int character = next_character();
      if (character == std::istream::traits_type::eof())
        throw InputError(expectation(location(0).text(), "a quote that ends the cell", "the end of the file"));
      if (character != '"') {
        text += static_cast<char>(character);
        continue;
      }
      if (in_.peek() != '"') return text;
      text += static_cast<char>(next_character());
    }
  }

  std::istream& in_;
  const std::string path_;
  const char delimiter_;
  int64_t line_ = 1, begin_ = 1;
  int ended_by_ = 0;
};

void skip_mark(std::istream& in, const std::string& path) {
  const int first = in.peek();
  if (first == 0xFE || first == 0xFF)
    throw InputError(expectation(path, "a table in UTF-8", "UTF-16",
                                 "saving it as CSV UTF-8, or: iconv -f UTF-16 -t "
                                 "UTF-8 " +
                                     path));
  if (first == static_cast<unsigned char>(kUtf8Mark[0])) in.ignore(static_cast<std::streamsize>(kUtf8Mark.size()));
}

// Returns the delimiter of a table by its first line.
char delimiter_of(const std::string& line) {
  for (const char delimiter : {',', ';', '\t'})
    if (line.find(delimiter) != std::string::npos) return delimiter;
  return ',';
}

std::vector<std::string> names_of(std::vector<Cell> cells, const std::string& path) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (size_t i = 0; i < cells.size(); ++i) {
    names.push_back(cells[i] ? *cells[i] : fmt::format("Unnamed: {}", i));
    if (!is_valid_utf8(names.back()))
      throw InputError(expectation(path + ":1", "names of columns in UTF-8", "other bytes", utf8_remedy(path)));
    if (!seen.insert(names.back()).second)
      throw InputError(expectation(path + ":1", "each column's name once", "'" + names.back() + "' twice"));
  }
  return names;
}

Row row_of(const std::vector<std::string>& names, std::vector<Cell> cells, const RowLocation& location) {
  if (cells.size() != names.size())
    throw InputError(expectation(location.text(), fmt::format("{} cells, as the first line has", names.size()),
                                 fmt::to_string(cells.size()), "quotes around a text that has a delimiter in it"));
  Row row = Row::object();
  for (size_t i = 0; i < names.size(); ++i) {
    if (cells[i] && !is_valid_utf8(*cells[i]))
      throw InputError(expectation(fmt::format("{} column {}", location.text(), names[i]), "UTF-8", "other bytes",
                                   utf8_remedy(location.file)));
    row[names[i]] = cells[i] ? Row(std::move(*cells[i])) : Row();
  }
  return row;
}

}  // namespace

std::string utf8_remedy(const std::string& path) { return "iconv -f LATIN1 -t UTF-8 " + path; }

void read_delimited(std::istream& in, const std::string& path, bool tabs, const RowSink& sink, const BadRowSink& bad) {
  skip_mark(in, path);
  std::string first;
  std::getline(in, first);
  std::istringstream header(first);
  const char delimiter = tabs ? '\t' : delimiter_of(first);
  const std::vector<std::string> names = names_of(CellReader(header, path, delimiter).next(), path);
  CellReader reader(in, path, delimiter);
  reader.skip(1);
  int64_t number = 0;
  for (std::vector<Cell> cells = reader.next(); !cells.empty(); cells = reader.next(), ++number) {
    const RowLocation location = reader.location(number);
    Row row;
    try {
      row = row_of(names, std::move(cells), location);
    } catch (const InputError& error) {
      if (!bad) throw;
      bad(error.what());
      continue;
    }
    sink(location, std::move(row));
  }
}

}  // namespace collimate::text
