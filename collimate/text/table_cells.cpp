#include "collimate/text/table_cells.h"

#include <algorithm>
#include <array>
#include <string>

#include "collimate/base/error.h"
#include "collimate/base/json.h"

namespace collimate::text {

namespace {

// A column, and the beginning of a text in it that is a list.
struct ListColumn {
  const char* name;
  const char* begins;
};

constexpr const char *kList = "[", *kMessages = "[{\"role\"";
constexpr ListColumn kListColumns[] = {{"messages", kList},    {"conversations", kList},  {"history", kList},
                                       {"prompt", kMessages},  {"completion", kMessages}, {"chosen", kMessages},
                                       {"rejected", kMessages}};

}  // namespace

void read_list_cells(Row& row, const RowLocation& location) {
  for (const auto& [name, begins] : kListColumns) {
    const auto cell = row.find(name);
    if (cell == row.end() || !cell->is_string()) continue;
    const auto text = cell->get<std::string>();
    const std::string where = location.text() + " column " + name;
    if (text.starts_with("[{'role'") || (begins == kList && (text.starts_with("[{'") || text.starts_with("[['"))))
      throw base::InputError(base::expectation(where, "a list, or its JSON as a text", "Python's form of it",
                                               "writing the column by json.dumps"));
    if (text.starts_with(begins)) *cell = base::parse_ordered_json(text, where);
  }
}

std::optional<bool> flag_of(const nlohmann::ordered_json& value) {
  constexpr std::array kTrue = {"true", "True", "TRUE", "1"}, kFalse = {"false", "False", "FALSE", "0"};
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value == 0 || value == 1 ? std::optional(value == 1) : std::nullopt;
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (std::ranges::count(kTrue, text) > 0) return true;
  return std::ranges::count(kFalse, text) > 0 ? std::optional(false) : std::nullopt;
}

}  // namespace collimate::text
