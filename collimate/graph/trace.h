#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "collimate/graph/graph.h"

namespace collimate::graph {

// A Value is a handle on what nodes exchange. It names one or more values of the graph being traced.
class Value {
 public:
  Value() = default;
  explicit Value(std::string name) : names_{std::move(name)} {}
  const std::vector<std::string>& names() const { return names_; }

 private:
  friend Value merge_values(const std::vector<Value>& values);
  std::vector<std::string> names_;
};

// Returns a value with all columns of several values, joined by row. Adds no node.
Value merge_values(const std::vector<Value>& values);
template <class... V>
Value merge(const V&... values) {
  return merge_values({values...});
}

// An After or a With may stand in a call besides values: nodes to wait for, parameters of the call.
struct After {
  std::vector<Value> values;
};
template <class... V>
After after(const V&... values) {
  return After{{values...}};
}
struct With {
  nlohmann::json parameters;
};
inline With with(nlohmann::json parameters) { return With{std::move(parameters)}; }

// A Call is one call that is being put together.
struct Call {
  std::vector<Value> inputs;
  After waits;
  nlohmann::json parameters;
  void add(const Value& value) { inputs.push_back(value); }
  void add(const After& other) { waits.values.insert(waits.values.end(), other.values.begin(), other.values.end()); }
  void add(const With& other) { parameters = other.parameters; }
};

// A ModelHandle is a model of the flow: `policy("generate", prompts)` adds a node. Throws InputError outside of
// trace(), and for an unknown function (listing the known ones).
class ModelHandle {
 public:
  ModelHandle(std::string name, std::vector<FunctionSpec> functions);

  template <class... Arguments>
  Value operator()(const std::string& function, const Arguments&... arguments) const {
    return merge_values(call(function, collect(arguments...), {}));
  }
  // Calls the model's only function.
  template <class... Arguments>
  Value operator()(const Value& first, const Arguments&... arguments) const {
    return merge_values(call(only_function(), collect(first, arguments...), {}));
  }
  template <class... Arguments>
  Value train(const Arguments&... arguments) const {
    return merge_values(call("train", collect(arguments...), {}));
  }
  // Adds a call with several outputs and returns one value for each name.
  template <class... Arguments>
  std::vector<Value> outputs(const std::string& function, const std::vector<std::string>& names,
                             const Arguments&... arguments) const {
    return call(function, collect(arguments...), names);
  }
  const std::string& name() const { return name_; }
  const std::vector<FunctionSpec>& functions() const { return functions_; }

 private:
  friend struct LoopCall;
  template <class... Arguments>
  static Call collect(const Arguments&... arguments) {
    Call made;
    (made.add(arguments), ...);
    return made;
  }
  std::vector<Value> call(const std::string& function, const Call& call, const std::vector<std::string>& outputs,
                          const std::vector<std::string>& services = {}) const;
  const std::string& only_function() const;

  std::string name_;
  std::vector<FunctionSpec> functions_;
};

// Returns a handle of a function that runs on the host: `gae(merge(...))`.
inline ModelHandle host_function(FunctionSpec spec) {
  std::string name = spec.name;
  return ModelHandle(std::move(name), {std::move(spec)});
}

// A LoopCall makes the composite node in which the environment drives its services turn by turn over data: `loop(env,
// {&policy, &tool})(prompts)`.
struct LoopCall {
  const ModelHandle& environment;
  std::vector<const ModelHandle*> services;
  template <class... Arguments>
  Value operator()(const Arguments&... arguments) const {
    return run(ModelHandle::collect(arguments...));
  }

 private:
  Value run(const Call& call) const;
};
inline LoopCall loop(const ModelHandle& environment, std::vector<const ModelHandle*> services) {
  return LoopCall{environment, std::move(services)};
}

struct Every {
  int64_t iterations = 1;
};
inline Every every(int64_t iterations) { return Every{iterations}; }
void link(const ModelHandle& source, const ModelHandle& destination, Every frequency = {});

// Runs `body` once with one Value per input and returns the validated graph. One trace per thread at a time.
Graph trace_inputs(const std::function<void(const std::vector<Value>&)>& body, std::vector<Input> inputs,
                   std::string name);

template <class F>
Graph trace(F&& body, std::vector<Input> inputs = {{"prompts", {}}}, std::string name = "flow") {
  auto run = [&body](const std::vector<Value>& values) {
    if constexpr (std::is_invocable_v<F&, const std::vector<Value>&> && !std::is_invocable_v<F&, Value>) {
      body(values);
    } else if constexpr (std::is_invocable_v<F&, Value>) {
      body(values.at(0));
    } else if constexpr (std::is_invocable_v<F&, Value, Value>) {
      body(values.at(0), values.at(1));
    } else {
      body(values.at(0), values.at(1), values.at(2));
    }
  };
  return trace_inputs(run, std::move(inputs), std::move(name));
}

}  // namespace collimate::graph
