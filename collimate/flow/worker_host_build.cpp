#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/flow/dist_actor.h"
#include "collimate/flow/planned_memory.h"
#include "collimate/flow/received_rows.h"
#include "collimate/flow/worker_host.h"
#include "collimate/tensor/aten_threads.h"

namespace collimate::flow {
namespace {

constexpr double kMostBeatSeconds = 1.0;

WorkerOptions options_of(const cluster::WorkerSpec& spec) { return nlohmann::json::parse(spec.options); }

nlohmann::json object_or_empty(nlohmann::json json) {
  return json.is_null() ? nlohmann::json::object() : std::move(json);
}

}  // namespace

WorkerHost::WorkerHost(const cluster::WorkerSpec& spec, const Registry& registry)
    : spec_(spec),
      config_(nlohmann::json::parse(spec.config)),
      graph_(graph::parse(spec.graph)),
      placement_(graph::parse_placement(spec.placement)),
      ledger_(spec.rank, options_of(spec).memory_budget_bytes) {
  tensor::use_one_aten_thread();
  tensor::tag_thread_memory(spec.rank, kRowMemory);
  base::LogPrefix prefix(fmt::format("worker {}", spec.rank));
  const WorkerOptions options = options_of(spec);
  beat_seconds_ = std::min(kMostBeatSeconds, options.deadline_seconds / 4);
  if (options.times_operations) operation_times_.emplace();
  calls_ = options.calls;
  const int threads = spec.rank < placement_.devices ? options.threads_per_worker : 1;
  pool_ =
      std::make_unique<host::CorePool>(threads, [rank = spec.rank] { tensor::tag_thread_memory(rank, kRowMemory); });
  for (const auto& [model, content] : graph_.models) {
    std::vector<int> workers = graph::workers_of(graph_, placement_, model);
    if (std::find(workers.begin(), workers.end(), spec_.rank) != workers.end()) build(model, registry, options);
  }
  std::map<std::string, std::vector<tensor::MemoryItem>> items;
  for (auto& [model, hosted] : models_) items[model] = hosted->module->memory(hosted->context);
  ledger_.plan(planned_turns(graph_, placement_, models_in_place(options), items));
  ledger_.check_budget();
  for (auto& [model, hosted] : models_) {
    hosted->module->setup(hosted->context);
    if (placement_.swaps(model)) hosted->module->reside(false);  // before the next model is set up
  }
}

WorkerHost::~WorkerHost() = default;

void WorkerHost::build(const std::string& model, const Registry& registry, const WorkerOptions& options) {
  auto hosted = std::make_unique<Hosted>();
  const auto chosen = options.modules.find(model);
  const WorkerModule choice = chosen == options.modules.end() ? WorkerModule{.kind = model} : chosen->second;
  Context& context = hosted->context;
  context.model = model;
  context.parameters = object_or_empty(choice.parameters);
  context.config = config_;
  context.calls = options.calls.value(model, std::vector<std::string>());
  context.seed = options.seed;
  context.device = spec_.rank;
  context.placement = placement_;
  context.pool = pool_.get();
  context.swap_directory = options.swap_directory;
  context.store = &store_;
  context.objects = &objects_;
  context.deadline_seconds = options.deadline_seconds;
  context.progress = [this] { beat(); };
  context.alone = comm::Mesh({}, {spec_.rank});
  context.meshes = meshes_of(graph_, placement_, model, spec_.rank);
  join_groups(*hosted, options);
  hosted->module = registry.create(choice.kind, context.parameters);
  models_.emplace(model, std::move(hosted));
}

WorkerHost::Place WorkerHost::place_of(const std::string& model) const {
  const std::vector<int> workers = graph::workers_of(graph_, placement_, model);
  const auto mine = std::find(workers.begin(), workers.end(), spec_.rank);
  return {static_cast<int>(mine - workers.begin()), static_cast<int>(workers.size())};
}

void WorkerHost::join_groups(Hosted& hosted, const WorkerOptions& options) {
  Context& context = hosted.context;
  std::map<std::string, int> expert_ranks;
  for (const auto& [function, mesh] : context.meshes) expert_ranks[function] = context.layout(function).ep;
  hosted.groups = LineGroups(context.meshes, expert_ranks, spec_.rank, [&](const std::vector<int>& ranks, int place) {
    comm::GroupPlace at;
    at.name = fmt::format("{}/{}/{}/{}", options.run, spec_.incarnation, context.model, fmt::join(ranks, "-"));
    at.store = options.group_store;
    at.rank = place;
    at.size = static_cast<int>(ranks.size());
    at.deadline_seconds = context.deadline_seconds;
    return comm::back_end(options.back_end).join(at);
  });
  context.lines = hosted.groups.lines();
}

message::Done WorkerHost::on(const message::Save& save) {
  for (const std::string& model : save.models)
    if (const auto found = models_.find(model); found != models_.end())
      save_state(*found->second->module, rank_folder(save.directory, model, place_of(model).rank));
  return {};
}

// The saved store is the driver's, which has the entries of all workers.
message::Done WorkerHost::on(const message::Load& load) {
  load_state(store_, load.directory + "/store");
  for (auto& [model, hosted] : models_) {
    const Place place = place_of(model);
    const bool comes = placement_.swaps(model) && hosted->module->keeps_state(hosted->context);
    if (comes) hosted->module->reside(true);
    load_rank(*hosted->module, load.directory, model, place.rank, place.ranks);
    if (comes) hosted->module->reside(false);
  }
  return {};
}

}  // namespace collimate::flow
