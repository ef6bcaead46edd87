#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collimate/flow/module.h"

namespace collimate::flow {

// A HostFunction takes rows and returns the columns that it makes (see Module::call). `info.parameters` are the node's.
using HostFunction = std::function<Batch(const Batch& input, const CallInfo& info, std::vector<Metric>& metrics)>;

// A HostModule is made of host functions, each with its spec: advantages, filters, anything without state or weights.
class HostModule : public Module {
 public:
  // Adds a function. Throws InputError when the name is there already.
  void add(const graph::FunctionSpec& spec, HostFunction function);

  std::vector<graph::FunctionSpec> functions() const override;
  void setup(Context& context) override;
  Batch call(const std::string& function, const Batch& input, const CallInfo& info) override;
  std::vector<Metric> metrics() override;

 private:
  struct Entry {
    graph::FunctionSpec spec;
    HostFunction function;
  };
  std::vector<Entry> entries_;
  std::vector<Metric> metrics_;
};

}  // namespace collimate::flow
