#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collimate::report {

// Makes one HTML page of what `collimate eval --json` prints: all numbers with their standard errors, and samples.
std::string render_evaluation(const nlohmann::ordered_json& document);

}  // namespace collimate::report
