#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/plan/inputs/device_kind.h"

// Published measurements against the cost model: `collimate bench planner`.
namespace collimate::plan::published {

// One row of a results file: its columns as text, absent ones empty.
struct Row {
  std::map<std::string, std::string, std::less<>> columns;
  DeviceKinds kinds;  // that its text may name
  std::string fault;  // not empty: why the row cannot be read
  const std::string& operator[](std::string_view column) const;
};

// The columns that must be there.
const std::vector<std::string>& needed_columns();
// Comma-separated values with a header line; fields in double quotes may hold commas, line breaks and doubled quotes.
// A byte order mark is skipped. A row of another width, or with a field too long to be one, is kept with its fault; its
// id is "row N" where it has none. InputError naming `where` for a missing column, an empty file or an open quote.
std::vector<Row> parse_rows(std::string_view text, const std::string& where);
std::vector<Row> read_rows(const std::string& path, const DeviceKinds& kinds);

}  // namespace collimate::plan::published
