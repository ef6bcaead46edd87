#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "collimate/text/rows.h"

// Reads cells of tables whose every cell is a text.
namespace collimate::text {

// Replaces a list that is written as JSON in a text by the list, in the columns that are lists in every shape
// (messages, conversations, history) and in those that may be messages (prompt, completion, chosen, rejected). Throws
// InputError where such a text is not JSON, and for Python's form of a list, which it names.
void read_list_cells(Row& row, const RowLocation& location);

// Returns a label as true or false; nothing where it says something else. Tables write 1 and 0 for them, and tables of
// texts "1", "0", and "true" and "false" in three spellings.
std::optional<bool> flag_of(const nlohmann::ordered_json& value);

}  // namespace collimate::text
