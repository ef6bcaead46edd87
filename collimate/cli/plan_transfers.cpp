#include "collimate/cli/plan_transfers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/base/terminal.h"
#include "collimate/cli/plan_search.h"
#include "collimate/model/lora.h"
#include "collimate/plan/search/search.h"
#include "collimate/plan/show/columns.h"
#include "collimate/plan/show/plan_text.h"
#include "collimate/plan/show/transfers.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"
#include "collimate/rlhf/modules/decoder.h"

namespace collimate::cli {
namespace {

namespace plan = collimate::plan;

constexpr int64_t kMasterBytes = 4,
                  kPlannedBytes = 2;  // bytes of a value: our workers send fp32; GPU software is planned in bf16

graph::Placement chosen_placement(PlanOptions& options, plan::Request& request) {
  PlanRequest made = plan_request(options);
  made.request.keep = 1;
  const plan::SearchResult result = search_plans(options, made);
  request = std::move(made.request);
  plan::require_plan(request, result);
  return result.plans.front().placement;
}

plan::LinkedWeights weights_of(const nlohmann::json& parameters) {
  rlhf::DecoderOptions options;
  base::apply(parameters, "models", options);
  const shape::ModelShape shape = rlhf::decoder_shape(options);
  const model::LoraOptions lora = rlhf::lora_options(options);
  return {shape, model::model_params(shape, lora),
          [lora](const shape::ParamSpec& spec) { return model::is_changed_by_training(lora, spec); }, kMasterBytes};
}

std::vector<plan::LinkTransfer> of_config(PlanOptions& options) {
  const recipe::Config config = recipe::load(options.config, options.sets);
  recipe::Plan page = recipe::complete_plan(config, recipe::module_registry());
  plan::Request request;
  const nlohmann::json& named = config.placement.get();
  const bool searched = named == "auto" || (named.is_object() && named.contains("auto")) || !options.cluster->empty() ||
                        !options.form->empty();
  const graph::Placement placement =
      searched ? chosen_placement(options, request) : recipe::make_placement(config, page);
  nlohmann::json calls = plan::calls_of_nodes(page.graph);
  for (const recipe::EvaluationPlan& evaluation : page.evaluations)
    for (const graph::Node& node : evaluation.graph.nodes) calls[node.model].push_back(node.function);
  std::map<std::string, plan::LinkedWeights> weights;
  for (const graph::WeightLink& link : page.graph.links)
    weights[link.source] = weights_of(page.modules.at(link.source).parameters);
  return plan::link_transfers(page.graph, placement, calls, weights);
}

std::vector<plan::LinkTransfer> of_flow(PlanOptions& options) {
  plan::Request request;
  const graph::Placement placement = chosen_placement(options, request);
  std::map<std::string, plan::LinkedWeights> weights;
  for (const graph::WeightLink& link : request.graph.links) {
    if (request.lora.contains(link.source))
      throw base::InputError(base::expectation("--transfers", "a config for adapters", "--lora", "a config"));
    weights[link.source] = plan::all_weights(shape::shape_of(plan::outline_of(request, link.source)), kPlannedBytes);
  }
  return plan::link_transfers(request.graph, placement, plan::calls_of_nodes(request.graph), weights);
}

}  // namespace

void print_transfers(PlanOptions& options, bool json) {
  const std::vector<plan::LinkTransfer> transfers = options.config->empty() ? of_flow(options) : of_config(options);
  if (json)
    print_json({{"transfers", plan::transfers_json(transfers)}});
  else
    fmt::print("{}", plan::transfers_text(transfers, base::terminal_columns(STDOUT_FILENO, plan::kTextColumns)));
}

}  // namespace collimate::cli
