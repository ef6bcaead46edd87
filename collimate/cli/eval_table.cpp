#include "collimate/cli/eval_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "collimate/plan/show/columns.h"
#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/left_out.h"

namespace collimate::cli {
namespace {

using Json = nlohmann::ordered_json;

// Formats an estimate as "0.838 ± 0.016", with `sign` as "+0.838 ± 0.016", and a missing value as "-".
std::string cell(const Json& estimate, bool sign) {
  if (estimate.at("value").is_null()) return "-";
  const auto exact = estimate.at("value").get<double>();
  const double value = std::abs(exact) < 1e-12 ? 0 : exact;  // equal means may differ by rounding
  const std::string text = sign ? fmt::format("{:+.4g}", value) : fmt::format("{:.4g}", value);
  const Json& error = estimate.at("standard_error");
  return error.is_null() ? text : fmt::format("{} ± {:.2g}", text, error.get<double>());
}

// A Column holds the heading of a column of the table and a cell for each metric.
using Column = std::vector<std::string>;

constexpr int kBetween = 3;  // spaces between columns

int width_of_column(const Column& column) {
  int width = 0;
  for (const std::string& cell : column) width = std::max(width, plan::width_of(cell));
  return width;
}

int width_of_all(const std::vector<Column>& columns) {
  int width = -kBetween;
  for (const Column& column : columns) width += width_of_column(column) + kBetween;
  return width;
}

Column column_of(const std::string& heading, const Json& metrics, const Json& names, bool sign) {
  Column column = {heading};
  for (const auto& [name, ignored] : names.items()) column.push_back(cell(metrics.at(name), sign));
  return column;
}

// Returns a column with the names of the metrics, then one for each model and each difference. Models are called by
// `names`.
std::vector<Column> columns_of(const Json& document, const std::vector<std::string>& names) {
  const Json& metrics = document.at("models").at(0).at("metrics");
  std::vector<Column> columns = {{""}};
  for (const auto& [name, ignored] : metrics.items()) columns[0].push_back(name);
  for (size_t i = 0; i < names.size(); ++i)
    columns.push_back(column_of(names[i], document.at("models").at(i).at("metrics"), metrics, false));
  for (size_t i = 1; i < names.size(); ++i)
    columns.push_back(column_of(names.size() == 2 ? "difference" : fmt::format("{} less {}", names[i], names[0]),
                                document.at("differences").at(i - 1).at("metrics"), metrics, true));
  return columns;
}

std::vector<std::string> lines_of(const std::vector<Column>& columns) {
  std::vector<std::string> lines(columns[0].size());
  for (const Column& column : columns) {
    const int width = &column == &columns.back() ? 0 : width_of_column(column) + kBetween;
    for (size_t row = 0; row < lines.size(); ++row)
      lines[row] += column[row] + std::string(std::max(0, width - plan::width_of(column[row])), ' ');
  }
  return lines;
}

// Formats the columns as blocks one below the other, each with the names of the metrics and as many columns as fit.
std::vector<std::string> blocks_of(const std::vector<Column>& columns, int width) {
  std::vector<std::string> lines;
  for (size_t next = 1; next < columns.size();) {
    std::vector<Column> block = {columns[0]};
    do {
      block.push_back(columns[next++]);
    } while (next < columns.size() && width_of_all(block) + kBetween + width_of_column(columns[next]) <= width);
    if (!lines.empty()) lines.emplace_back();
    for (std::string& line : lines_of(block)) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> names_of(const Json& document) {
  std::vector<std::string> names;
  for (const Json& model : document.at("models")) names.push_back(model.at("model"));
  return names;
}

// Formats the table. If the models' names make it too wide, a list above it gives each model a number, which the table
// uses instead.
std::vector<std::string> table_of(const Json& document, int width) {
  std::vector<std::string> names = names_of(document), lines;
  const std::vector<Column> columns = columns_of(document, names);
  if (names.size() == 1 || width_of_all(columns) <= width) return blocks_of(columns, width);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string number = fmt::format("({})", i + 1);
    lines.push_back(fmt::format("{} {}", number, names[i]));
    names[i] = number;
  }
  lines.emplace_back();
  for (std::string& line : blocks_of(columns_of(document, names), width)) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> wrapped(const std::string& text, int width) {
  std::vector<std::string> lines;
  std::istringstream in(plan::hanging("", text, width));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string headline(const Json& document) {
  const Json& first = document.at("models").at(0);
  int64_t units = 0;
  for (const auto& [name, estimate] : first.at("metrics").items())
    units = std::max(units, estimate.at("units").get<int64_t>());
  const std::string measure = document.at("measure"), data = document.at("data").is_string()
                                                                 ? document.at("data").get<std::string>()
                                                                 : document.at("data").dump();
  const auto rows = first.at("rows").get<int64_t>();
  using recipe::counted;
  if (measure == "marked") return fmt::format("{} of {}: {}", measure, data, counted(rows, "row"));  // of both marks
  if (measure != "completions") return fmt::format("{} of {}: {}", measure, data, counted(units, "row"));
  return fmt::format("completions of {}: {}, {}, temperature {}, seed {}", data, counted(units, "prompt"),
                     counted(rows, "sample"), document.at("settings").value("temperature", 0.0),
                     document.at("settings").at("seed").get<int64_t>());
}

// Adds lines about rows that models were not measured on, or only in part. Models with the same text share a line.
void add_left_out(const Json& document, int width, std::vector<std::string>& lines) {
  std::vector<std::pair<std::string, std::vector<std::string>>> told;  // text, models
  for (const Json& model : document.at("models"))
    for (const Json& rows : model.at("left_out")) {
      const std::string text = rows.get<recipe::LeftOutRows>().short_text();
      const auto known = std::ranges::find(told, text, [](const auto& one) { return one.first; });
      auto& entry = known == told.end() ? told.emplace_back(text, std::vector<std::string>()) : *known;
      entry.second.push_back(model.at("model"));
    }
  if (!told.empty()) lines.emplace_back();
  for (const auto& [text, models] : told) {
    const bool all = models.size() == document.at("models").size();
    const std::string of = all ? "" : fmt::format("{}: ", fmt::join(models, ", "));
    for (std::string& line : wrapped(of + text, width)) lines.push_back(std::move(line));
  }
}

// Explains ±, if the lines have any.
void add_note(const Json& document, int width, std::vector<std::string>& lines) {
  if (std::ranges::none_of(lines, [](const std::string& line) { return line.find("±") != std::string::npos; })) return;
  lines.emplace_back();
  const bool several = document.at("models").size() > 1;
  const std::string note = several ? "; that of a difference is taken row by row, so it can be smaller." : ".";
  for (std::string& line : wrapped("± is the standard error" + note, width)) lines.push_back(std::move(line));
}

}  // namespace

std::vector<std::string> evaluation_table(const Json& document, int columns) {
  std::vector<std::string> lines = wrapped(headline(document), columns);
  lines.emplace_back();
  for (std::string& line : table_of(document, columns)) lines.push_back(std::move(line));
  add_note(document, columns, lines);
  add_left_out(document, columns, lines);
  return lines;
}

}  // namespace collimate::cli
