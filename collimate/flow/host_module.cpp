#include "collimate/flow/host_module.h"

#include "collimate/base/error.h"

namespace collimate::flow {

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
  throw base::InputError(
      base::expectation("host function", fmt::format("one of {}", fmt::join(known, ", ")), function));
}

std::vector<Metric> HostModule::metrics() { return std::exchange(metrics_, {}); }

}  // namespace collimate::flow
