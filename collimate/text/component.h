#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace collimate::text {

// Maps the name of a component to the function that reads such a component from a tokenizer.json.
template <class Function>
using Components = std::map<std::string, Function, std::less<>>;

// Throws InputError: `where` expected a `kind` among `known`, and got `type`.
[[noreturn]] void unknown_component(const std::string& where, const std::string& kind, const std::string& type,
                                    const std::string& known);

struct ComponentKind {
  const char* name;   // "normalizer"
  const char* parts;  // the key of a Sequence's parts
};

// Calls read(component, type, function) for a component, or for each one in a Sequence. Null is none. Throws
// InputError, which names all there are, for a type that is not in the list.
template <class Function>
void each_component(const ComponentKind& kind, const Components<Function>& list, const nlohmann::json& component,
                    const std::string& where, const auto& read) {
  if (component.is_null()) return;
  const std::string type = component.at("type");
  if (type == "Sequence") {
    for (const nlohmann::json& part : component.at(kind.parts)) each_component(kind, list, part, where, read);
  } else if (const auto found = list.find(type); found != list.end()) {
    read(component, type, found->second);
  } else {
    std::string known;
    for (const auto& [name, function] : list) known += name + ", ";
    unknown_component(where, kind.name, type, known + "Sequence");
  }
}

}  // namespace collimate::text
