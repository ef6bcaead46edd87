#pragma once

#include <map>
#include <string>

#include "collimate/base/error.h"

namespace collimate::text {

// Maps the name of a component to the function that reads such a component from a tokenizer.json.
template <class Function>
using Components = std::map<std::string, Function, std::less<>>;

// Throws InputError: `where` expected a `kind` among `known`, and got `type`.
[[noreturn]] void unknown_component(const std::string& where, const std::string& kind, const std::string& type,
                                    const std::string& known);

// Returns the function of the component `type`. Throws InputError, which names all there are, for another type.
template <class Function>
Function component_of(const Components<Function>& list, const std::string& where, const std::string& kind,
                      const std::string& type) {
  if (const auto found = list.find(type); found != list.end()) return found->second;
  std::string known;
  for (const auto& [name, function] : list) known += name + ", ";
  unknown_component(where, kind, type, known + "Sequence");
}

}  // namespace collimate::text
