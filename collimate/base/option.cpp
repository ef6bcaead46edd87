#include "collimate/base/option.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "collimate/base/config_scalar.h"
#include "collimate/base/config_text.h"
#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/json_text.h"

namespace collimate::base::detail {
namespace {

[[noreturn]] void wrong_type(const ConfigNode& node, const std::string& path, const std::string& type) {
  const bool number = type == "a number" || type == "an integer";
  throw InputError(expectation(node.where, fmt::format("{} to be {}", path, type), node.description(),
                               number && node.quoted ? "digits without quotes" : ""));
}

template <class T>
T required(const std::optional<T>& value, const ConfigNode& node, const std::string& path, const std::string& type) {
  if (!value) wrong_type(node, path, type);
  if (node.quoted)
    throw InputError(expectation(node.where, fmt::format("{} to be {}", path, type), node.description(),
                                 node.text + " without quotes"));
  return *value;
}

template <class T>
struct Scalar;

template <>
struct Scalar<bool> {
  static constexpr const char* kName = "true or false";
  static bool read(const ConfigNode& node, const std::string& path) {
    return required(parse_bool(node.text), node, path, kName);
  }
  static ConfigNode write(bool value) { return {ConfigNode::Kind::kScalar, value ? "true" : "false"}; }
};

template <>
struct Scalar<int64_t> {
  static constexpr const char* kName = "an integer";
  static int64_t read(const ConfigNode& node, const std::string& path) {
    return required(parse_integer(node.text), node, path, kName);
  }
  static ConfigNode write(int64_t value) { return {ConfigNode::Kind::kScalar, std::to_string(value)}; }
};

template <>
struct Scalar<double> {
  static constexpr const char* kName = "a number";
  static double read(const ConfigNode& node, const std::string& path) {
    const double value = required(parse_number(node.text), node, path, kName);
    if (!std::isfinite(value))
      throw InputError(expectation(node.where, fmt::format("{} to be a finite number", path), node.text));
    return value;
  }
  static ConfigNode write(double value) { return {ConfigNode::Kind::kScalar, number_text(value)}; }
};

template <>
struct Scalar<std::string> {
  static constexpr const char* kName = "a string";
  static std::string read(const ConfigNode& node, const std::string& path) {
    if (node.kind != ConfigNode::Kind::kScalar) wrong_type(node, path, kName);
    return node.text;
  }
  static ConfigNode write(const std::string& value) { return {ConfigNode::Kind::kScalar, value, true}; }
};

// A Codec reads and writes one type of option: scalars, optionals and lists of them, and any subtree.
template <class T>
struct Codec {
  static std::string type_name() { return Scalar<T>::kName; }
  static T read(const ConfigNode& node, const std::string& path) { return Scalar<T>::read(node, path); }
  static ConfigNode write(const T& value) { return Scalar<T>::write(value); }
};

template <class T>
struct Codec<std::optional<T>> {
  static std::string type_name() { return fmt::format("{} or null", Scalar<T>::kName); }
  static std::optional<T> read(const ConfigNode& node, const std::string& path) {
    if (node.kind == ConfigNode::Kind::kNull) return std::nullopt;
    return Scalar<T>::read(node, path);
  }
  static ConfigNode write(const std::optional<T>& value) { return value ? Scalar<T>::write(*value) : ConfigNode(); }
};

template <class T>
struct Codec<std::vector<T>> {
  static std::string type_name() { return fmt::format("a list, each {}", Scalar<T>::kName); }
  static std::vector<T> read(const ConfigNode& node, const std::string& path) {
    if (node.kind == ConfigNode::Kind::kScalar) return {Scalar<T>::read(node, path)};
    if (node.kind != ConfigNode::Kind::kList) wrong_type(node, path, type_name());
    std::vector<T> out;
    for (const auto& entry : node.children) {
      out.push_back(Scalar<T>::read(entry, join_path(path, std::to_string(out.size()))));
    }
    return out;
  }
  static ConfigNode write(const std::vector<T>& value) {
    ConfigNode out{ConfigNode::Kind::kList};
    for (const auto& entry : value) out.children.push_back(Scalar<T>::write(entry));
    return out;
  }
};

template <>
struct Codec<nlohmann::json> {
  static std::string type_name() { return "any value"; }
  static nlohmann::json read(const ConfigNode& node, const std::string&) { return to_json(node); }
  static ConfigNode write(const nlohmann::json& value) { return from_json(value, ""); }
};

// Converts a node to JSON with its keys in written order. Throws InputError for infinite numbers and NaN, which JSON
// lacks.
nlohmann::ordered_json ordered(const ConfigNode& node, const std::string& path) {
  if (node.kind == ConfigNode::Kind::kList) {
    auto out = nlohmann::ordered_json::array();
    for (const ConfigNode& entry : node.children) out.push_back(ordered(entry, path));
    return out;
  }
  if (node.kind != ConfigNode::Kind::kMap) {
    const nlohmann::json value = to_json(node);
    if (value.is_number_float() && !std::isfinite(value.get<double>()))
      throw InputError(expectation(node.where, fmt::format("finite numbers in {}", path), node.text));
    return value;
  }
  auto out = nlohmann::ordered_json::object();
  for (size_t i = 0; i < node.keys.size(); ++i) out[node.keys[i]] = ordered(node.children[i], path);
  return out;
}

template <>
struct Codec<JsonText> {
  static std::string type_name() { return "a string or a mapping"; }
  static JsonText read(const ConfigNode& node, const std::string& path) {
    if (node.kind == ConfigNode::Kind::kMap) return {ordered(node, path).dump()};
    if (node.kind != ConfigNode::Kind::kScalar) wrong_type(node, path, type_name());
    return {node.text};
  }
  static ConfigNode write(const JsonText& value) { return Scalar<std::string>::write(value.text); }
};

std::string shown(const ConfigNode& value) {
  const bool text = value.kind == ConfigNode::Kind::kScalar && value.quoted;
  return text ? fmt::format("\"{}\"", value.text) : flow_yaml(value);
}

[[noreturn]] void refuse(const std::string& where, const std::string& path, const std::string& expected,
                         const std::string& got, const std::string& remedy) {
  throw InputError(
      expectation(where.empty() ? "configuration" : where, fmt::format("{} to be {}", path, expected), got, remedy));
}

}  // namespace

std::string value_as_yaml(const ConfigNode& value) { return flow_yaml(value); }

void refuse_value(const std::string& where, const std::string& path, const std::string& expected, const ConfigNode& got,
                  const std::string& why) {
  refuse(where, path, expected, why.empty() ? shown(got) : fmt::format("{} ({})", shown(got), why), "");
}

void check_failed_for(const std::string& where, const std::string& path, const std::string& expected,
                      const ConfigNode& got, const std::vector<std::string>& choices) {
  const std::string near = choices.empty() ? "" : nearest(got.text, choices);
  refuse(where, path, expected, shown(got), near.empty() ? "" : fmt::format("\"{}\"", near));
}

template <class T>
std::string ConfigValue<T>::type_name() {
  return Codec<T>::type_name();
}

template <class T>
T ConfigValue<T>::read_value(const ConfigNode& node, const std::string& path) {
  return Codec<T>::read(node, path);
}

template <class T>
ConfigNode ConfigValue<T>::to_value(const T& value) {
  return Codec<T>::write(value);
}

template struct ConfigValue<bool>;
template struct ConfigValue<int64_t>;
template struct ConfigValue<double>;
template struct ConfigValue<std::string>;
template struct ConfigValue<std::optional<bool>>;
template struct ConfigValue<std::optional<int64_t>>;
template struct ConfigValue<std::optional<double>>;
template struct ConfigValue<std::optional<std::string>>;
template struct ConfigValue<std::vector<int64_t>>;
template struct ConfigValue<std::vector<double>>;
template struct ConfigValue<std::vector<std::string>>;
template struct ConfigValue<nlohmann::json>;
template struct ConfigValue<JsonText>;

}  // namespace collimate::base::detail
