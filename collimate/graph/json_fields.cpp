#include "collimate/graph/json_fields.h"

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

void wrong_type(const nlohmann::json& value, const std::string& where) {
  throw base::InputError(
      base::expectation(where, "another type of value", fmt::format("{} {}", value.type_name(), value.dump())));
}

}  // namespace collimate::graph
