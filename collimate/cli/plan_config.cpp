#include "collimate/cli/machine_file.h"
#include "collimate/cli/plan_request.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"

namespace collimate::cli {

void read_plan_config(const PlanOptions& options, PlanRequest& made) {
  const recipe::Config config = recipe::load(options.config, options.sets);
  const recipe::Plan page = recipe::complete_plan(config, recipe::module_registry());
  made.request.graph = page.graph;
  for (const auto& [model, module] : page.modules)
    if (module.parameters.contains("path"))
      made.request.models[model] = shape::find_outline(module.parameters.at("path").get<std::string>());
  collimate::plan::Workload& load = made.request.load;
  load.rows = static_cast<double>(page.rows_per_iteration);
  load.updates = static_cast<int>(recipe::updates_per_iteration(config, page));
  const bool draws = page.rows == rlhf::RowKind::kPrompt;
  const int64_t prompt = draws ? config.rollout.prompt_tokens.get() : 1;
  load.prompt = collimate::plan::Lengths::fixed(static_cast<double>(prompt));
  load.completion = collimate::plan::Lengths::fixed(
      static_cast<double>(draws ? config.rollout.completion_tokens.get() : config.data.max_tokens.get() - 1));
  made.iterations = config.run.iterations;
  made.lengths_key = lengths_key(config);
  made.request.cluster = {{{1, static_cast<int>(config.devices.get()), collimate::plan::find_gpu("cpu")}}};
  made.request.whole = true;
}

}  // namespace collimate::cli
