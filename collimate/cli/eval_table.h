#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::cli {

// Formats recipe::evaluation_document() as lines for a terminal of `columns` characters: what was measured, then a row
// for each metric with a column for each model, "0.838 ± 0.016", and a column for the difference of each later model
// from the first. Columns that do not fit side by side are printed in blocks one below the other.
std::vector<std::string> evaluation_table(const nlohmann::ordered_json& document, int columns);

}  // namespace collimate::cli
