#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "collimate/text/rows.h"

// Cells of tables whose every cell is a text.
namespace collimate::text {

// Reads the columns that are lists in every shape (messages, conversations, history), and those that may be messages
// (prompt, completion, chosen, rejected), where a text has the list as JSON.
// InputError where it is none, which knows Python's form of it.
void read_list_cells(Row& row, const RowLocation& location);

// A label as true or false; nothing where it says something else. Tables write 1 and 0, and those of texts "1", "0",
// "true" and "false" in three spellings, for them.
std::optional<bool> flag_of(const nlohmann::ordered_json& value);

}  // namespace collimate::text
