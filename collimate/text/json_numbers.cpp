#include "collimate/text/json_numbers.h"

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/base/json.h"

namespace collimate::text {
namespace {

// Returns the end of the string whose quote stands at `at`, behind its last quote.
size_t string_end(std::string_view json, size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return std::min(at + 1, json.size());
}

bool is_truth(std::string_view key) {
  return key == "ground_truth" || key == "answer" || key == "solution" || key == "label";
}

bool is_fraction(std::string_view number) { return number.find_first_of(".eE") != std::string_view::npos; }

// Returns the number that a whole number becomes by reading; nothing where that keeps it.
std::optional<std::string> kept_otherwise(std::string_view number) {
  if (is_fraction(number) || number.size() < 19) return std::nullopt;  // 18 digits and a sign fit 64 bits
  const auto value = nlohmann::json::parse(number);
  return value.is_number_integer() ? std::nullopt : std::optional(value.dump());
}

// Returns that for whole numbers, and in ground truths for fractions too.
std::optional<std::string> truth_kept_otherwise(std::string_view number, std::string_view key) {
  if (!is_fraction(number) || !is_truth(key)) return kept_otherwise(number);
  std::string kept = nlohmann::json::parse(number).dump();
  return kept == number ? std::nullopt : std::optional(std::move(kept));
}

// Returns the first number for which `kept_as(number, key)` gives something.
template <class Kept>
std::optional<ChangedNumber> find_number(std::string_view json, const Kept& kept_as) {
  std::string_view key;
  for (size_t at = 0; at < json.size();) {
    const char c = json[at];
    if (c == '"') {
      const size_t end = string_end(json, at), next = json.find_first_not_of(" \t\r\n", end);
      if (next != std::string_view::npos && json[next] == ':') key = json.substr(at + 1, end - at - 2);
      at = end;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      const size_t end = std::min(json.find_first_not_of("+-.0123456789eE", at), json.size());
      const std::string_view number = json.substr(at, end - at);
      if (auto kept = kept_as(number, key)) return ChangedNumber{std::string(key), std::string(number), *kept};
      at = end;
    } else {
      ++at;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<ChangedNumber> find_changed_number(std::string_view json) {
  return find_number(json, truth_kept_otherwise);
}

nlohmann::ordered_json parse_exact_json(std::string_view text, const std::string& where, int64_t first_line) {
  nlohmann::ordered_json json = base::parse_ordered_json(text, where, first_line);
  const auto changed =
      find_number(text, [](std::string_view number, std::string_view) { return kept_otherwise(number); });
  if (changed)
    throw base::InputError(base::expectation(where, "whole numbers of 64 bits",
                                             fmt::format("{}, which would become {}", changed->written, changed->kept),
                                             fmt::format("quotes around it, \"{}\"", changed->written)));
  return json;
}

}  // namespace collimate::text
