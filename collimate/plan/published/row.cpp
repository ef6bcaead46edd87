#include "collimate/plan/published/row.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "collimate/base/error.h"

namespace collimate::plan::published {
namespace {

constexpr size_t kLongestField = 4000;

// The records of the text, each a list of fields.
std::vector<std::vector<std::string>> records(std::string_view text, const std::string& where) {
  std::vector<std::vector<std::string>> all(1, std::vector<std::string>(1));
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& field = all.back().back();
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      all.back().emplace_back();
    } else if (!quoted && c == '\n') {
      all.emplace_back(1);
    } else if (quoted || c != '\r') {
      field += c;
    }
  }
  if (quoted) throw base::InputError(base::expectation(where, "a closing double quote", "the end of the file"));
  std::erase_if(all, [](const auto& record) { return record.size() == 1 && record[0].empty(); });
  return all;
}

Row row_of_fields(const std::vector<std::string>& names, const std::vector<std::string>& fields, size_t number) {
  Row row;
  if (fields.size() != names.size()) row.fault = fmt::format("{} fields instead of {}", fields.size(), names.size());
  for (size_t k = 0; k < std::min(names.size(), fields.size()); ++k) {
    row.columns[names[k]] = fields[k].substr(0, kLongestField);
    if (fields[k].size() > kLongestField)
      row.fault = fmt::format("'{}' has {} characters, more than {}", names[k], fields[k].size(), kLongestField);
  }
  if (row["id"].empty()) row.columns["id"] = fmt::format("row {}", number);
  return row;
}

}  // namespace

const std::string& Row::operator[](std::string_view column) const {
  static const std::string kNone;
  const auto found = columns.find(column);
  return found == columns.end() ? kNone : found->second;
}

const std::vector<std::string>& needed_columns() {
  static const std::vector<std::string> kNames = {
      "id",         "paper",   "algo",   "actor",    "critic", "ref",   "reward", "n_gpus", "gpu_type",  "batch",
      "prompt_len", "gen_len", "system", "baseline", "metric", "value", "unit",   "phase",  "placement", "parallelism"};
  return kNames;
}

std::vector<Row> parse_rows(std::string_view text, const std::string& where) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::vector<std::vector<std::string>> all = records(text, where);
  if (all.size() < 2) throw base::InputError(base::expectation(where, "a header and at least one row", "none"));
  for (const std::string& name : needed_columns())
    if (std::find(all[0].begin(), all[0].end(), name) == all[0].end())
      throw base::InputError(base::expectation(where, "a column " + name, "none"));
  std::vector<Row> rows;
  for (size_t i = 1; i < all.size(); ++i) rows.push_back(row_of_fields(all[0], all[i], i));
  return rows;
}

std::vector<Row> read_rows(const std::string& path, const DeviceKinds& kinds) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw base::InputError(base::expectation(path, "a file of published results", "no such file"));
  std::ostringstream text;
  text << file.rdbuf();
  std::vector<Row> rows = parse_rows(text.str(), path);
  for (Row& row : rows) row.kinds = kinds;
  return rows;
}

}  // namespace collimate::plan::published
