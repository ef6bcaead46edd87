#include "collimate/text/argument_value.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/base/stripped.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

constexpr size_t kEscapeLength = 6;  // of \uXXXX

// Returns the value of the \uXXXX that the text begins with, 0 where it begins otherwise.
unsigned escaped_unit(std::string_view text) {
  unsigned unit = 0;
  if (!text.starts_with("\\u") || text.size() < kEscapeLength) return 0;
  const char* end = text.data() + kEscapeLength;
  return std::from_chars(text.data() + 2, end, unit, 16).ptr == end ? unit : 0;
}

std::string with_whole_surrogates(std::string_view json) {
  std::string out(json);
  for (size_t at = out.find('\\'); at != std::string::npos; at = out.find('\\', at)) {
    const std::string_view rest = std::string_view(out).substr(at);
    const unsigned unit = escaped_unit(rest);
    const auto half = [](unsigned u, unsigned first) { return u >= first && u < first + 0x400; };
    const bool pair = half(unit, 0xD800) && half(escaped_unit(rest.substr(kEscapeLength)), 0xDC00);
    if (!pair && (half(unit, 0xD800) || half(unit, 0xDC00))) out.replace(at, kEscapeLength, "\\ufffd");
    at += pair ? 2 * kEscapeLength : 2;
  }
  return out;
}

std::optional<std::string> with_last_values(std::string_view json) {
  bool deep = false;
  const auto shallow = [&](int depth, auto, auto&) { return !(deep = deep || depth > base::kMaxJsonDepth); };
  const auto value = nlohmann::json::parse(json, shallow, false);
  return deep || value.is_discarded() ? std::nullopt : std::optional(value.dump());
}

std::string type_of_value(const ordered_json& value) {
  if (value.is_number()) return value.is_number_integer() ? "integer" : "number";
  return value.type_name();
}

using Types = std::set<std::string>;

// Returns the types that a schema allows. Each part of a schema that names no type allows a text.
Types types_of(const ordered_json& schema) {
  static const ordered_json kNone = ordered_json::array();
  const auto elements = [&](const char* key) -> const ordered_json& {
    return schema.is_object() && schema.contains(key) && schema.at(key).is_array() ? schema.at(key) : kNone;
  };
  Types types;
  if (schema.is_object() && schema.contains("type") && schema.at("type").is_string()) types.insert(schema.at("type"));
  for (const ordered_json& type : elements("type"))
    if (type.is_string()) types.insert(type);
  for (const ordered_json& value : elements("enum")) types.insert(type_of_value(value));
  for (const char* key : {"anyOf", "oneOf", "allOf"})
    for (const ordered_json& choice : elements(key)) types.merge(types_of(choice));
  return types.empty() ? Types{"string"} : types;
}

bool is_number(std::string_view json) { return json.front() == '-' || (json.front() >= '0' && json.front() <= '9'); }
bool is_integer(std::string_view json) {
  return is_number(json) && json.find_first_of(".eE") == std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string out(base::stripped(text));
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

}  // namespace

std::optional<std::string> json_text(std::string_view written) {
  std::string text = with_whole_surrogates(base::stripped(written));
  try {
    base::parse_ordered_json(text, "a call");
    return text;
  } catch (const base::InputError&) {  // a text that only looks like JSON, or one with a key twice
    return with_last_values(text);
  }
}

std::string argument_value(std::string_view written, const ordered_json& schema) {
  const Types types = types_of(schema);
  const auto allowed = [&](const char* type) { return types.contains(type); };
  const std::string word = lower(written);
  const std::optional<std::string> json = json_text(written);
  if (allowed("null") && (word == "null" || word == "none")) return "null";
  if (json && ((allowed("integer") && is_integer(*json)) || (allowed("number") && is_number(*json)))) return *json;
  if (allowed("boolean") && (word == "true" || word == "1")) return "true";
  if (allowed("boolean") && (word == "false" || word == "0")) return "false";
  if (json && (allowed("object") || allowed("array") || !allowed("string"))) return *json;
  return ordered_json(written).dump();
}

}  // namespace collimate::text
