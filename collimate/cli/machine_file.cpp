#include "collimate/cli/machine_file.h"

#include <cstdio>

#include "collimate/base/config.h"
#include "collimate/host/file_io.h"

namespace collimate::cli {

std::string lengths_key(const recipe::Config& config) {
  const recipe::Config standard;
  recipe::Config same;
  same.recipe = config.recipe.get();
  same.models = config.models;
  same.data.train = config.data.train.get();
  same.data.max_tokens = config.data.max_tokens.get();
  same.rollout = config.rollout;
  same.rollout.prompts_per_iteration = standard.rollout.prompts_per_iteration.get();
  same.rollout.samples_per_prompt = standard.rollout.samples_per_prompt.get();
  return base::config_hash(same);
}

collimate::plan::Machine machine_of(const PlanOptions& options) {
  if (options.machine->empty()) return {};
  return collimate::plan::parse_machine(host::read_file(options.machine.get()), options.machine);
}

void use_lengths(const collimate::plan::Machine& machine, const PlanOptions& options, PlanRequest& made) {
  if (machine.config.empty() || (!options.prompt->empty() && !options.completion->empty())) return;
  if (machine.config != made.lengths_key) {
    std::fprintf(stderr, "lengths: those in %s are not used, because they are another config's\n",
                 options.machine->c_str());
    return;
  }
  const auto use = [&](const char* name, const std::string& given, const std::string& measured, auto& lengths) {
    if (!given.empty()) return;
    lengths = collimate::plan::Lengths::parse(measured, options.machine.get() + ": lengths." + name);
    std::fprintf(stderr, "%s: %s tokens, as %s says for this config\n", name, measured.c_str(),
                 options.machine->c_str());
  };
  use("prompt", options.prompt, machine.prompt, made.request.load.prompt);
  use("completion", options.completion, machine.completion, made.request.load.completion);
}

}  // namespace collimate::cli
