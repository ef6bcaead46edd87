#include "collimate/plan/show/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collimate/base/edit_distance.h"
#include "collimate/base/named.h"
#include "collimate/plan/inputs/backends.h"
#include "collimate/plan/inputs/device_kind.h"
#include "collimate/plan/show/columns.h"
#include "collimate/shape/outline.h"

namespace collimate::plan {
namespace {

using nlohmann::ordered_json;

ordered_json constants_table(const Constants& constants, const DeviceKinds&) {
  ordered_json rows = ordered_json::array();
  for (const ConstantInfo& info : constant_table())
    rows.push_back({{"constant", info.name},
                    {"value", constants.*info.member},
                    {"default", info.value},
                    {"low", info.low},
                    {"high", info.high},
                    {"unit", info.unit},
                    {"what", info.help},
                    {"source", info.source}});
  return rows;
}

ordered_json backends_table(const Constants&, const DeviceKinds&) {
  ordered_json rows = ordered_json::array();
  for (const Backend& backend : backends()) rows.push_back({{"backend", backend.name}, {"source", backend.source}});
  return rows;
}

ordered_json devices_table(const Constants&, const DeviceKinds& kinds) {
  ordered_json rows = ordered_json::array();
  for (const DeviceKind& kind : kinds.all()) {
    ordered_json row = {{"device", kind.name}};
    for (const DeviceKey& key : device_keys())
      std::visit([&](auto member) { row[key.name] = kind.*member; }, key.member);
    row["source"] = kind.source;
    rows.push_back(std::move(row));
  }
  return rows;
}

ordered_json device_keys_table(const Constants&, const DeviceKinds&) {
  ordered_json rows = ordered_json::array();
  for (const DeviceKey& key : device_keys())
    rows.push_back({{"key", key.name},
                    {"low", key.low},
                    {"high", key.high},
                    {"unit", key.unit},
                    {"in_step", key.in_step == InStep::kLesser ? "lesser" : "greater"},
                    {"what", key.help}});
  return rows;
}

ordered_json models_table(const Constants&, const DeviceKinds&) {
  ordered_json rows = ordered_json::array();
  for (const std::string& name : shape::outline_names()) {
    const shape::Outline& model = *shape::outline_named(name);
    rows.push_back({{"model", name},
                    {"parameters", shape::total_parameters(model)},
                    {"active", shape::active_parameters(model)},
                    {"layers", model.layers},
                    {"hidden", model.hidden}});
  }
  return rows;
}

struct Table {
  const char* name;
  ordered_json (*rows)(const Constants&, const DeviceKinds&);
};
constexpr Table kTables[] = {{"backends", backends_table},
                             {"constants", constants_table},
                             {"device_keys", device_keys_table},
                             {"devices", devices_table},
                             {"models", models_table}};

std::string cell(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  return fmt::format("{:.6g}", value.get<double>());
}

// Writes each row as its first cell and, below it, a line "key: value" for every other one; `lines` begins with the
// keys.
std::string as_records(const std::vector<std::vector<std::string>>& lines, int columns) {
  std::string text;
  for (size_t row = 1; row < lines.size(); ++row) {
    text += lines[row].front() + "\n";
    for (size_t i = 1; i < lines[row].size(); ++i)
      if (!lines[row][i].empty()) text += hanging(fmt::format("  {}: ", lines.front()[i]), lines[row][i], columns);
  }
  return text;
}

}  // namespace

ordered_json table_json(const std::string& name, const Constants& constants, const DeviceKinds& kinds) {
  for (const Table& table : kTables)
    if (name == table.name) return table.rows(constants, kinds);
  base::throw_unknown_choice("--list", name, base::names_of(kTables));
}

std::string table_text(const ordered_json& rows, int columns) {
  std::vector<std::vector<std::string>> lines;
  for (const ordered_json& row : rows) {
    if (lines.empty()) {
      lines.emplace_back();
      for (const auto& [key, value] : row.items()) lines.back().push_back(key);
    }
    lines.emplace_back();
    for (const auto& [key, value] : row.items()) lines.back().push_back(cell(value));
  }
  std::vector<size_t> widths(lines.empty() ? 0 : lines.front().size());
  for (const auto& line : lines)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  size_t width = widths.empty() ? 0 : 2 * (widths.size() - 1);
  for (const size_t column : widths) width += column;
  if (columns > 0 && width > static_cast<size_t>(columns)) return as_records(lines, columns);
  std::string text;
  for (const auto& line : lines) {
    for (size_t i = 0; i + 1 < line.size(); ++i) text += fmt::format("{:<{}}", line[i], widths[i] + 2);
    text.append(line.back()).append("\n");
  }
  return text;
}

}  // namespace collimate::plan
