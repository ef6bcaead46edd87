#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::cli {

// recipe::evaluation_document() as lines for a terminal of so many columns: what was measured, then a row for each
// number with a column for each model, "0.838 ± 0.016", and for each model after the first its difference from the
// first. What does not fit beside each other stands below each other.
std::vector<std::string> evaluation_table(const nlohmann::ordered_json& document, int columns);

}  // namespace collimate::cli
