#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/base/memory_words.h"
#include "collimate/cli/machine_file.h"
#include "collimate/cli/plan_request.h"
#include "collimate/host/base_model.h"
#include "collimate/model/kv_cache.h"
#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"
#include "collimate/rlhf/modules/service_options.h"

namespace collimate::cli {
namespace {

namespace plan = collimate::plan;

// Replaces models' paths that exist relative to `directory` by paths through it; "" changes nothing.
void see_models_from(const std::filesystem::path& directory, recipe::Config& config) {
  for (const auto& [name, model] : config.models)
    if (const auto path = directory / model.path.get(); !directory.empty() && std::filesystem::exists(path))
      config.models[name].path = path.lexically_normal().string();
}

// Returns the LoRA ranks of the models that train with adapters.
std::map<std::string, int64_t> lora_of(const recipe::Plan& page) {
  std::map<std::string, int64_t> ranks;
  for (const auto& [model, module] : page.modules)
    if (page.graph.models.contains(model) && page.graph.trains(model) && module.parameters.contains("lora"))
      if (const auto rank = module.parameters.at("lora").at("rank").get<int64_t>(); rank > 0) ranks[model] = rank;
  return ranks;
}

// Returns whether all models are directories. A model may also be a name of the planner's table, which can be planned
// but not run.
bool has_files(const recipe::Plan& page) {
  return std::all_of(page.modules.begin(), page.modules.end(), [](const auto& entry) {
    const nlohmann::json& parameters = entry.second.parameters;
    return !parameters.contains("path") || std::filesystem::is_directory(parameters.at("path").get<std::string>());
  });
}

constexpr double kMebi = 1 << 20;

// Returns which devices need more than `budget` MiB and by how much the one that needs most exceeds it, counted by the
// memory plans that the workers would begin with.
plan::Excess excess_of(const std::vector<flow::PlannedMemory>& planned, int64_t budget) {
  plan::Excess most;
  for (const flow::PlannedMemory& device : planned) {
    const double bytes = static_cast<double>(device.bytes()), over = bytes - static_cast<double>(budget) * kMebi;
    if (over > 0) most.devices.insert(device.worker);
    if (over <= most.bytes) continue;
    const tensor::MemoryItem& largest = device.items.front();
    most.bytes = over;
    most.why = fmt::format("device {} needs {} of {} (run.memory_budget){}, of which {} {}", device.worker,
                           base::byte_size(bytes), base::byte_size(static_cast<double>(budget) * kMebi),
                           device.has_turns ? " although models take turns" : "", base::memory_words(largest.purpose),
                           base::byte_size(static_cast<double>(largest.bytes)));
  }
  return most;
}

// Fills in graph, shapes, precision, adapters and shared weights of a config's models.
void read_page_models(const recipe::Plan& page, PlanRequest& made) {
  made.request.graph = page.graph;
  made.request.lora = lora_of(page);
  for (const auto& [model, module] : page.modules) {
    const nlohmann::json& parameters = module.parameters;
    if (parameters.contains("path")) {
      shape::Outline& outline = made.request.models[model];
      outline = shape::find_outline(host::base_directory(parameters.at("path").get<std::string>()));
      outline.latent.cached = parameters.value("latent_cache", false);
    }
    if (parameters.contains("compute"))
      made.compute[model] = tensor::compute_type_of(parameters.at("compute").get<std::string>());
    if (parameters.contains("base")) made.request.bases[model] = parameters.at("base").get<std::string>();
  }
}

// Fills in the longest rows that the config allows: prompts and completions if it draws them, else rows of the data.
void read_lengths(const recipe::Config& config, const recipe::Plan& page, PlanRequest& made) {
  const bool prompts = page.rows == rlhf::RowKind::kPrompt;
  const bool draws = prompts || config.redraws();
  const int64_t of_data = config.data.max_tokens;
  const int64_t prompt = prompts ? config.rollout.prompt_tokens.get() : draws ? of_data : 1;
  const int64_t completion = draws ? config.rollout.completion_tokens.get() : of_data - 1;
  made.request.load.prompt = plan::Lengths::fixed(static_cast<double>(prompt));
  made.request.load.completion = plan::Lengths::fixed(static_cast<double>(completion));
  if (!draws) return;
  made.service = rlhf::service_options(config.rollout);
  made.service->max_sequence_tokens = prompt + completion;
}

// Reads the options by which training saves memory.
void read_savings(const rlhf::TrainOptions& train, plan::Request& request) {
  request.recomputes = train.recompute == std::string("full");
  request.selective = train.recompute == std::string("selective");
  request.offloads = train.offload == std::string("optimizer");
}

}  // namespace

void read_plan_config(const PlanOptions& options, PlanRequest& made) {
  recipe::Config config = recipe::load(options.config, options.sets);
  made.lengths_key = lengths_key(config);
  see_models_from(options.directory.get(), config);
  const flow::Registry registry = recipe::module_registry();
  recipe::Plan page = recipe::complete_plan(config, registry);
  if (config.run.epochs.get() && !options.iterations.get()) {
    if (!has_files(page))
      throw base::InputError(base::expectation("run.epochs", "a model at hand, whose tokenizer reads the data",
                                               "one that is not", "--iterations N"));
    recipe::settle_iterations(config, registry, recipe::read_data(config, page), page);
  }
  read_page_models(page, made);
  plan::Workload& load = made.request.load;
  load.rows = static_cast<double>(page.rows_per_iteration);
  load.updates = static_cast<int>(recipe::updates_per_iteration(config, page));
  read_lengths(config, page, made);
  load.settings.micro_batch_tokens = static_cast<double>(recipe::micro_batch_tokens(config, page));
  read_savings(config.train, made.request);
  made.iterations = config.run.iterations;
  made.request.cluster = {{{1, static_cast<int>(config.devices.get()), made.request.kinds.find("cpu")}}};
  made.request.whole = true;
  // A run that allows no difference stops where generation and training add up in other ways.
  if (page.rows == rlhf::RowKind::kPrompt && config.train.mismatch_limit == 0)
    made.request.sum_chunks = static_cast<int>(config.model("policy").reduction_chunks.get());
  made.memory_budget = config.run.memory_budget;
  if (made.memory_budget > 0 && has_files(page)) made.memory_of = recipe::memory_of(config, page);
}

void use_module_settings(PlanRequest& made) {
  plan::Request& request = made.request;
  if (!request.cluster.has_cpus()) request.sum_chunks = 0;  // other software has its own sums
  if (!request.whole) {
    request.load.settings = {};
    request.recomputes = request.selective = request.offloads = false;
  }
  if (!request.whole || !made.service) return;
  for (const graph::Node& node : request.graph.nodes) {
    if (request.graph.spec(request.graph.node_index(node.id)).kind != graph::Kind::kGenerate) continue;
    const shape::Outline& outline = plan::outline_of(request, node.model);
    shape::ModelShape shape;
    shape::Block block;
    block.attention = {outline.heads, outline.kv_heads, outline.head_dim};
    block.attention.latent = outline.latent;
    shape.blocks.assign(static_cast<size_t>(outline.layers), block);
    shape.max_positions = made.service->max_sequence_tokens;
    const auto samples = static_cast<int64_t>(request.load.rows);
    const tensor::ComputeType compute = made.compute.at(node.model);
    const int64_t blocks = rlhf::with_cache(*made.service, samples, shape, compute).cache_blocks;
    request.load.settings.cached_value_bytes =
        static_cast<double>(model::kv_block_bytes(shape, model::kv_type(compute))) /
        (model::KvCache::kBlockTokens * shape::cached_values(outline) * static_cast<double>(outline.layers));
    request.load.settings.batch_rows = static_cast<double>(made.service->max_batch_sequences);
    request.load.settings.pool_tokens = static_cast<double>(model::KvCache::kBlockTokens * blocks);
  }
}

void use_memory_budget(const PlanOptions& options, PlanRequest& made) {
  if (made.memory_budget == 0) return;
  const bool same = options.models->empty() && options.lora->empty() && options.shadows->empty() &&
                    !options.rows.get() && !options.updates.get() && !options.micro_batch.get();
  if (made.request.whole && made.memory_of && same) {
    made.request.excess = [memory_of = made.memory_of, budget = made.memory_budget](const graph::Placement& placement) {
      return excess_of(memory_of(placement), budget);
    };
    made.request.turns = true;
    return;
  }
  const double bytes = static_cast<double>(made.memory_budget) * kMebi / made.request.constants.usable_memory;
  for (plan::NodeGroup& group : made.request.cluster.groups)
    group.gpu.memory_bytes = std::min(group.gpu.memory_bytes, bytes);
}

}  // namespace collimate::cli
