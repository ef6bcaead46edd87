#include "collimate/cli/machine_file.h"
#include "collimate/cli/plan_request.h"
#include "collimate/model/kv_cache.h"
#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"
#include "collimate/rlhf/modules/service_options.h"

namespace collimate::cli {
namespace {

namespace plan = collimate::plan;

// Ranks of the adapters of what trains.
std::map<std::string, int64_t> lora_of(const recipe::Plan& page) {
  std::map<std::string, int64_t> ranks;
  for (const auto& [model, module] : page.modules)
    if (page.graph.models.contains(model) && page.graph.trains(model) && module.parameters.contains("lora"))
      if (const auto rank = module.parameters.at("lora").at("rank").get<int64_t>(); rank > 0) ranks[model] = rank;
  return ranks;
}

}  // namespace

void read_plan_config(const PlanOptions& options, PlanRequest& made) {
  const recipe::Config config = recipe::load(options.config, options.sets);
  const recipe::Plan page = recipe::complete_plan(config, recipe::module_registry());
  made.request.graph = page.graph;
  for (const auto& [model, module] : page.modules)
    if (module.parameters.contains("path"))
      made.request.models[model] = shape::find_outline(module.parameters.at("path").get<std::string>());
  for (const auto& [model, module] : page.modules)
    if (module.parameters.contains("compute"))
      made.compute[model] = tensor::compute_type_of(module.parameters.at("compute").get<std::string>());
  made.request.lora = lora_of(page);
  plan::Workload& load = made.request.load;
  load.rows = static_cast<double>(page.rows_per_iteration);
  load.updates = static_cast<int>(recipe::updates_per_iteration(config, page));
  const bool draws = page.rows == rlhf::RowKind::kPrompt;
  const int64_t prompt = draws ? config.rollout.prompt_tokens.get() : 1;
  load.prompt = plan::Lengths::fixed(static_cast<double>(prompt));
  load.completion = plan::Lengths::fixed(
      static_cast<double>(draws ? config.rollout.completion_tokens.get() : config.data.max_tokens.get() - 1));
  load.settings.micro_batch_tokens = static_cast<double>(recipe::micro_batch_tokens(config, page));
  made.request.recomputes = config.train.recompute == std::string("full");
  if (draws) made.service = rlhf::service_options(config.rollout);
  made.iterations = config.run.iterations;
  made.lengths_key = lengths_key(config);
  made.request.cluster = {{{1, static_cast<int>(config.devices.get()), plan::find_device_kind("cpu")}}};
  made.request.whole = true;
}

void use_module_settings(PlanRequest& made) {
  plan::Request& request = made.request;
  if (!request.whole) {
    request.load.settings = {};
    request.recomputes = false;
  }
  if (!request.whole || !made.service) return;
  for (const graph::Node& node : request.graph.nodes) {
    if (request.graph.spec(request.graph.node_index(node.id)).kind != graph::Kind::kGenerate) continue;
    const shape::Outline& outline = plan::outline_of(request, node.model);
    shape::ModelShape shape;
    shape.layers = outline.layers;
    shape.kv_heads = outline.kv_heads;
    shape.head_dim = outline.head_dim;
    shape.max_positions = made.service->max_sequence_tokens;
    const auto samples = static_cast<int64_t>(request.load.rows);
    const tensor::ComputeType compute = made.compute.at(node.model);
    const int64_t blocks = rlhf::with_cache(*made.service, samples, shape, compute).cache_blocks;
    request.load.settings.cached_value_bytes = model::kv_layout(shape, compute).bf16 ? 2 : 4;
    request.load.settings.batch_rows = static_cast<double>(made.service->max_batch_sequences);
    request.load.settings.pool_tokens = static_cast<double>(model::KvCache::kBlockTokens * blocks);
  }
}

}  // namespace collimate::cli
