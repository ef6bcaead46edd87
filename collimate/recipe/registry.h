#pragma once

#include <memory>
#include <string>

#include "collimate/flow/registry.h"

namespace collimate::recipe {

// Returns the list of module kinds, which says what recipes' graphs mean by them. Those of the program itself come
// last.
flow::Registry module_registry();

// Makes a module of the program's own known to recipes, as Page::model names it. Call it before configs are read and
// runs start, in every process that works for the run; it is not thread-safe. Throws InputError when the name is taken.
void register_module(const std::string& kind, flow::ModuleFactory factory);

// Does so for a class whose constructor takes the module's parameters.
template <class Module>
void register_module(const std::string& kind) {
  register_module(kind, [](const nlohmann::json& parameters) { return std::make_unique<Module>(parameters); });
}

}  // namespace collimate::recipe
