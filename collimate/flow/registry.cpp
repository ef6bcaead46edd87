#include "collimate/flow/registry.h"

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::flow {
namespace {

std::string joined(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

}  // namespace

void Registry::add(const std::string& kind, ModuleFactory factory) {
  if (!entries_.emplace(kind, Entry{std::move(factory), false}).second)
    throw base::RunError(base::expectation("module registry", "each kind once", kind + " twice"));
}

void Registry::add_pinned(const std::string& kind, ModuleFactory factory) {
  add(kind, std::move(factory));
  entries_.at(kind).pinned = true;
}

const Registry::Entry& Registry::find(const std::string& kind) const {
  auto found = entries_.find(kind);
  if (found == entries_.end())
    throw base::InputError(base::expectation("module kind", "one of " + joined(kinds()), kind));
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

void HostModule::add(const graph::FunctionSpec& spec, HostFunction function) {
  for (const Entry& entry : entries_)
    if (entry.spec.name == spec.name)
      throw base::InputError(base::expectation("host module", "each function once", spec.name + " twice"));
  entries_.push_back({spec, std::move(function)});
}

std::vector<graph::FunctionSpec> HostModule::functions() const {
  std::vector<graph::FunctionSpec> specs;
  for (const Entry& entry : entries_) specs.push_back(entry.spec);
  return specs;
}

void HostModule::setup(Context&) {}

Batch HostModule::call(const std::string& function, const Batch& input, const CallInfo& info) {
  std::vector<std::string> known;
  for (const Entry& entry : entries_) {
    if (entry.spec.name == function) return entry.function(input, info, metrics_);
    known.push_back(entry.spec.name);
  }
  throw base::InputError(base::expectation("host function", "one of " + joined(known), function));
}

std::vector<Metric> HostModule::metrics() { return std::exchange(metrics_, {}); }

}  // namespace collimate::flow
