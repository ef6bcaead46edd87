#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::base {

// A ConfigNode is one node of a configuration as it was written: a text has no type until an option asks for one.
struct ConfigNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text;     // of a scalar, after ${ENV} was expanded
  bool quoted = false;  // a quoted scalar is a string, whatever it looks like (except "${ENV}")
  std::string where;    // "config.yaml:12": the line of the key that holds the node; "--set a.b" for an override
  std::vector<std::string> keys;  // of a map, in written order; keys[i] holds children[i]
  std::vector<ConfigNode> children;

  const ConfigNode* find(std::string_view key) const;
  ConfigNode& child(const std::string& key);  // appended when absent
  // Returns what an error says it got: "a mapping", "a list", "nothing", or the scalar in quotes.
  std::string description() const;
};

// Plain scalars become null, bool, integer, number or string by the part of YAML 1.2's core rules that config_scalar.h
// names. Quoted scalars stay strings.
nlohmann::json to_json(const ConfigNode& node);
// Errors about any part of the node name `where`.
ConfigNode from_json(const nlohmann::json& value, const std::string& where);

}  // namespace collimate::base
