#pragma once

#include <map>
#include <string>

#include "collimate/base/error.h"

namespace collimate::text {

// A list of components by name: functions that read one from a tokenizer.json.
template <class Function>
using Components = std::map<std::string, Function, std::less<>>;

// [where] expected one of `known`, got `type`.
[[noreturn]] void unknown_component(const std::string& where, const std::string& kind, const std::string& type,
                                    const std::string& known);

// The function of the component `type`; InputError that names those there are.
template <class Function>
Function component_of(const Components<Function>& list, const std::string& where, const std::string& kind,
                      const std::string& type) {
  if (const auto found = list.find(type); found != list.end()) return found->second;
  std::string known;
  for (const auto& [name, function] : list) known += name + ", ";
  unknown_component(where, kind, type, known + "Sequence");
}

}  // namespace collimate::text
