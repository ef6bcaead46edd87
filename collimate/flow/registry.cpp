#include "collimate/flow/registry.h"

#include "collimate/base/error.h"

namespace collimate::flow {

void Registry::add(const std::string& kind, ModuleFactory factory) {
  if (!entries_.emplace(kind, Entry{std::move(factory), false}).second)
    throw base::RunError(base::expectation("module registry", "each kind once", kind + " twice"));
}

void Registry::add_pinned(const std::string& kind, ModuleFactory factory) {
  add(kind, std::move(factory));
  entries_.at(kind).pinned = true;
}

const Registry::Entry& Registry::find(const std::string& kind) const {
  const auto found = entries_.find(kind);
  if (found == entries_.end())
    throw base::InputError(base::expectation("module kind", fmt::format("one of {}", fmt::join(kinds(), ", ")), kind));
  return found->second;
}

std::unique_ptr<Module> Registry::create(const std::string& kind, const nlohmann::json& parameters) const {
  return find(kind).factory(parameters);
}

bool Registry::pinned(const std::string& kind) const { return find(kind).pinned; }

std::vector<std::string> Registry::kinds() const {
  std::vector<std::string> kinds;
  for (const auto& [kind, entry] : entries_) kinds.push_back(kind);
  return kinds;
}

}  // namespace collimate::flow
