#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collimate::report {

// What `collimate eval --json` prints as one HTML page: a table of all numbers with their standard errors, and samples.
std::string render_evaluation(const nlohmann::ordered_json& document);

}  // namespace collimate::report
