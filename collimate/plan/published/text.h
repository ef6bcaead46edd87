#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/shape/outline.h"

// Reading the short texts in the columns of a results file.
namespace collimate::plan::published {

constexpr int kMostDevices = 100000;

bool has(std::string_view text, std::string_view word);       // case does not matter
bool has_word(std::string_view text, std::string_view word);  // the same, with no letter on either side
// The groups of the first match, or nothing. Case does not matter, or does.
std::optional<std::vector<std::string>> match(const std::string& text, const char* pattern);
std::optional<std::vector<std::string>> match_case(const std::string& text, const char* pattern);
// Its first group as a number, or `fallback`.
double number(const std::string& text, const char* pattern, double fallback);
// The whole text as a finite number.
std::optional<double> finite(const std::string& text);
// Digits as a count; kMostDevices + 1 for any that are more.
int whole(const std::string& text);
// `7`, `30B-A3B (Qwen3)`, `DeepSeek V3`, `7 (Qwen2.5-Math-7B)`: the model, or nothing.
std::optional<shape::Outline> model_of(const std::string& text);

}  // namespace collimate::plan::published
