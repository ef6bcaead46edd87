#include "collimate/base/config_node.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "collimate/base/config_scalar.h"
#include "collimate/base/error.h"

namespace collimate::base {
namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || stop != end || error != std::errc()) return std::nullopt;
  return value;
}

nlohmann::json scalar_to_json(const ConfigNode& node) {
  if (node.quoted) return node.text;
  if (const auto flag = parse_bool(node.text)) return *flag;
  if (const auto integer = parse_integer(node.text)) return *integer;
  if (const auto natural = parse_whole<uint64_t>(node.text)) return *natural;
  if (const auto number = parse_number(node.text)) return *number;
  return node.text;
}

ConfigNode scalar_node(std::string text, bool quoted, const std::string& where) {
  return {ConfigNode::Kind::kScalar, std::move(text), quoted, where};
}

}  // namespace

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

std::optional<int64_t> parse_integer(std::string_view text) { return parse_whole<int64_t>(text); }

std::optional<double> parse_number(std::string_view text) {
  if (text == ".inf" || text == "+.inf") return INFINITY;
  if (text == "-.inf") return -INFINITY;
  if (text == ".nan") return NAN;
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;  // "inf", "nan" and "infinity" are words
}

std::string number_text(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

const ConfigNode* ConfigNode::find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return &children[i];
  }
  return nullptr;
}

ConfigNode& ConfigNode::child(const std::string& key) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return children[i];
  }
  keys.push_back(key);
  return children.emplace_back();
}

std::string ConfigNode::description() const {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a mapping";
    case Kind::kScalar:
      break;
  }
  return fmt::format("{}\"{}\"", quoted ? "the text " : "", text);
}

nlohmann::json to_json(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return nullptr;
    case ConfigNode::Kind::kScalar:
      return scalar_to_json(node);
    case ConfigNode::Kind::kList: {
      auto out = nlohmann::json::array();
      for (const auto& entry : node.children) out.push_back(to_json(entry));
      return out;
    }
    case ConfigNode::Kind::kMap:
      break;
  }
  auto out = nlohmann::json::object();
  for (size_t i = 0; i < node.keys.size(); ++i) out[node.keys[i]] = to_json(node.children[i]);
  return out;
}

ConfigNode from_json(const nlohmann::json& value, const std::string& where) {
  if (value.is_null()) return {ConfigNode::Kind::kNull, "", false, where};
  if (value.is_string()) return scalar_node(value.get<std::string>(), true, where);
  if (value.is_number_float()) return scalar_node(number_text(value.get<double>()), false, where);
  if (value.is_primitive()) return scalar_node(value.dump(), false, where);
  ConfigNode out{value.is_array() ? ConfigNode::Kind::kList : ConfigNode::Kind::kMap, "", false, where};
  for (const auto& [key, child] : value.items()) {
    if (value.is_object()) out.keys.push_back(key);
    out.children.push_back(from_json(child, where));
  }
  return out;
}

}  // namespace collimate::base
