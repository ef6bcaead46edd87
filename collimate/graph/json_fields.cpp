#include "collimate/graph/json_fields.h"

#include <cmath>

namespace collimate::graph {

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

JsonFields::JsonFields(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object())
    throw base::InputError(base::expectation(where_, "a table of keys and values", object.type_name()));
}

const nlohmann::json* JsonFields::find(const char* key) {
  asked_.insert(key);
  auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

void JsonFields::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (asked_.count(key)) continue;
    throw base::InputError(base::expectation(
        where_, "keys " + join(std::vector<std::string>(asked_.begin(), asked_.end())), "unknown key '" + key + "'"));
  }
}

void JsonFields::missing(const char* key) const {
  throw base::InputError(base::expectation(where_, fmt::format("a key '{}'", key), "none"));
}

void wrong_type(const nlohmann::json& value, const std::string& where, const std::string& expected) {
  throw base::InputError(base::expectation(where, expected, fmt::format("{} {}", value.type_name(), value.dump())));
}

int64_t read_integer(const nlohmann::json& value, const std::string& where, int64_t least, int64_t most) {
  constexpr double kMostExact = 9007199254740992;  // 2^53, up to which a double has every whole number
  bool whole = value.is_number_integer();
  if (value.is_number_unsigned()) whole = value.get<uint64_t>() <= static_cast<uint64_t>(most);
  if (value.is_number_float()) {
    const double number = value.get<double>();
    whole = number == std::floor(number) && std::abs(number) <= kMostExact;
  }
  if (!whole || value.get<int64_t>() < least || value.get<int64_t>() > most)
    wrong_type(value, where, fmt::format("a whole number from {} to {}", least, most));
  return value.get<int64_t>();
}

}  // namespace collimate::graph
