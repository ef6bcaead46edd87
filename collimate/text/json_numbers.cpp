#include "collimate/text/json_numbers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace collimate::text {
namespace {

// End of the string whose quote stands at `at`, behind its last quote.
size_t string_end(std::string_view json, size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\') ++at;
  }
  return std::min(at + 1, json.size());
}

bool is_truth(std::string_view key) {
  return key == "ground_truth" || key == "answer" || key == "solution" || key == "label";
}

// Tells what becomes of a number that reading changes.
std::optional<std::string> kept_otherwise(std::string_view number, std::string_view key) {
  const bool fraction = number.find_first_of(".eE") != std::string_view::npos;
  if (fraction ? !is_truth(key) : number.size() < 19) return std::nullopt;  // 18 digits and a sign fit 64 bits
  const auto value = nlohmann::json::parse(number);
  if (!fraction && value.is_number_integer()) return std::nullopt;
  std::string kept = value.dump();
  return kept == number ? std::nullopt : std::optional(std::move(kept));
}

}  // namespace

std::optional<ChangedNumber> find_changed_number(std::string_view json) {
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
      if (auto kept = kept_otherwise(number, key)) return ChangedNumber{std::string(key), std::string(number), *kept};
      at = end;
    } else {
      ++at;
    }
  }
  return std::nullopt;
}

}  // namespace collimate::text
