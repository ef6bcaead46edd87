#include "collimate/recipe/python_module.h"

#include <memory>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/recipe/python_numbers.h"
#include "collimate/recipe/python_process.h"
#include "collimate/recipe/registry.h"

namespace collimate::recipe {
namespace {

using nlohmann::json;

std::vector<graph::FunctionSpec> specs_of(const json& told) {
  std::vector<graph::FunctionSpec> specs;
  for (const json& function : told.at("functions")) specs.push_back(graph::function_spec_from_json(function));
  return specs;
}

// Throws RunError for what the file or the module raises in the function, as a run has begun.
template <class Function>
auto of_the_run(const Function& function) {
  try {
    return function();
  } catch (const base::InputError& error) {
    throw base::RunError(error.what());
  }
}

class PythonModule final : public flow::Module {
 public:
  PythonModule(std::string path, uint32_t crc, json told, json parameters)
      : path_(std::move(path)), crc_(crc), told_(std::move(told)), parameters_(std::move(parameters)) {}

  std::vector<graph::FunctionSpec> functions() const override { return specs_of(told_); }

  void setup(flow::Context& context) override {
    seconds_ = context.deadline_seconds;
    of_the_run([&] { process_ = std::make_unique<PythonProcess>(path_, crc_, seconds_); });
    ask({{"make", told_.at("name")}, {"parameters", parameters_}});
  }

  Batch call(const std::string& function, const Batch& input, const flow::CallInfo&) override {
    const batch::WireBatch wire = batch::serialize(input);
    PythonProcess::Answer answer = ask({{"call", function}, {"batch", json::parse(wire.header)}}, wire.frames);
    const json& names = answer.header.at("metrics");
    const std::vector<double> values = last_numbers(answer.buffers, names.size());
    for (size_t i = 0; i < names.size(); ++i) metrics_.push_back({names[i], values[i]});
    const Batch made = batch::parse({answer.header.at("batch").dump(), std::move(answer.buffers)});
    return input.merge(made);
  }

  std::vector<flow::Metric> metrics() override { return std::exchange(metrics_, {}); }
  void save(base::StateWriter& out) const override { out.json("state", ask({{"save", true}}).header.at("state")); }
  void load(base::StateReader& in) override {
    if (json state = in.json("state"); !state.is_null()) ask({{"load", std::move(state)}});
  }

 private:
  PythonProcess::Answer ask(const json& question, const PythonProcess::Buffers& buffers = {}) const {
    return of_the_run([&] { return process_->ask(question, buffers, seconds_); });
  }

  const std::string path_;
  const uint32_t crc_;
  const json told_, parameters_;
  double seconds_ = 0;  // for each answer
  std::unique_ptr<PythonProcess> process_;
  std::vector<flow::Metric> metrics_;
};

}  // namespace

void register_python_module(const std::string& path, uint32_t crc, const json& told) {
  specs_of(told);
  register_module(told.at("name"), [path, crc, told](const json& parameters) {
    return std::make_unique<PythonModule>(path, crc, told, parameters);
  });
}

}  // namespace collimate::recipe
