#include "collimate/cli/eval_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "collimate/text/utf8.h"

namespace collimate::cli {
namespace {

using Json = nlohmann::ordered_json;

// "0.838 ± 0.016"; a difference has its sign.
std::string cell(const Json& estimate, bool sign) {
  if (estimate.at("value").is_null()) return "-";
  const auto value = estimate.at("value").get<double>();
  const std::string text = sign ? fmt::format("{:+.4g}", value) : fmt::format("{:.4g}", value);
  const Json& error = estimate.at("standard_error");
  return error.is_null() ? text : fmt::format("{} ± {:.2g}", text, error.get<double>());
}

std::vector<std::vector<std::string>> cells_of(const Json& document) {
  const bool several = document.at("models").size() > 1;
  std::vector<std::vector<std::string>> rows = {{""}};
  for (const Json& model : document.at("models")) rows[0].push_back(model.at("model"));
  for (const Json& difference : document.at("differences"))
    rows[0].push_back(document.at("differences").size() == 1
                          ? "difference"
                          : fmt::format("{} less the first", difference.at("to").get<std::string>()));
  for (const auto& [name, ignored] : document.at("models").at(0).at("metrics").items()) {
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{name});
    for (const Json& model : document.at("models")) row.push_back(cell(model.at("metrics").at(name), false));
    if (!several) continue;
    for (const Json& difference : document.at("differences"))
      row.push_back(cell(difference.at("metrics").at(name), true));
  }
  return rows;
}

size_t columns_of(const std::string& text) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = std::max<size_t>(1, text::utf8_length(std::string_view(text).substr(i)));
    columns += 1;
    i += bytes;
  }
  return columns;
}

std::string headline(const Json& document) {
  const Json& first = document.at("models").at(0);
  int64_t units = 0;
  for (const auto& [name, estimate] : first.at("metrics").items())
    units = std::max(units, estimate.at("units").get<int64_t>());
  const std::string measure = document.at("measure"), data = document.at("data").is_string()
                                                                 ? document.at("data").get<std::string>()
                                                                 : document.at("data").dump();
  if (measure != "completions") return fmt::format("{} of {}: {} rows", measure, data, units);
  return fmt::format("completions of {}: {} prompts, {} samples, temperature {}, seed {}", data, units,
                     first.at("rows").get<int64_t>(), document.at("settings").value("temperature", 0.0),
                     document.at("settings").at("seed").get<int64_t>());
}

}  // namespace

std::vector<std::string> evaluation_table(const Json& document) {
  const std::vector<std::vector<std::string>> rows = cells_of(document);
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  std::vector<std::string> lines = {headline(document), ""};
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += row[i] + (i + 1 < row.size() ? std::string(widths[i] - columns_of(row[i]) + 3, ' ') : "");
    lines.push_back(line);
  }
  lines.emplace_back();
  lines.push_back(rows[0].size() > 2
                      ? "± is the standard error; that of a difference is taken row by row, so it can be smaller."
                      : "± is the standard error.");
  return lines;
}

}  // namespace collimate::cli
