#include "collimate/flow/executor.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/cluster/process/process_worker.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/flow/drive.h"
#include "collimate/flow/line_groups.h"
#include "collimate/flow/link_check.h"
#include "collimate/flow/planned_memory.h"
#include "collimate/flow/received_rows.h"
#include "collimate/flow/worker_host.h"
#include "collimate/graph/whole_layout.h"
#include "collimate/host/atomic_file.h"
#include "collimate/tensor/allocator.h"

namespace collimate::flow {
namespace {

std::vector<int> all_workers(const Driver& driver) {
  std::vector<int> workers(static_cast<size_t>(driver.workers()));
  std::iota(workers.begin(), workers.end(), 0);
  return workers;
}

// Refuses loops over services. These are traced, validated, scheduled and planned, but their environments have no
// runtime here.
void check_runnable(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes)
    if (!node.services.empty())
      throw base::InputError(base::expectation("node " + node.id, "a call of one model",
                                               "a loop over services, which this executor lacks",
                                               "a function of the environment that calls no service"));
}

// An Execution is one run: the workers, the journal, the run's drive and the code that answers its saves.
class Execution {
 public:
  Execution(const graph::Graph& graph, const graph::Placement& placement, const Registry& registry,
            const RunOptions& options)
      : placement_(placement),
        options_(options),
        journal_(options.directory.empty() ? "" : options.directory + "/journal.bin", options.replay),
        driver_(graph, placement, registry, options),
        drive_(driver_, journal_,
               {graph, placement, options.schedule, options.next_rows,
                [this](const IterationResult& result) { after_iteration(result); }, options.evaluations,
                device_memory(graph, placement, registry, options)}) {
    if (options.directory.empty()) return;
    checkpoints_.emplace(options.directory, options.keep);
    drive_.on_save_model = [this](int64_t iteration, const std::string& model) { save_model(iteration, model); };
    drive_.on_save = [this](int64_t iteration) { save(iteration); };
  }

  RunResult run() {
    std::string earlier = options_.directory;
    if (!options_.resume.empty()) {
      load(options_.resume);
      earlier = run_of_checkpoint(options_.resume);
      if (options_.on_resumed) options_.on_resumed();
    }
    if (!options_.directory.empty()) drive_.record(options_.directory + "/events.jsonl", earlier + "/events.jsonl");
    int64_t before = drive_.completed();
    const bool ended = !options_.resume.empty() && options_.stop != nullptr && options_.stop->requested();
    const graph::StopKind end = ended ? graph::StopKind::kAsked : drive_.run();
    if (checkpoints_) checkpoints_->settle();
    if (checkpoints_ && options_.keep.value && !options_.exports.empty()) load_best(end);
    for (const auto& [model, directory] : options_.exports) export_model(model, directory);
    report_end();
    driver_.stop();
    if (end == graph::StopKind::kAsked)
      throw base::StoppedError(fmt::format("[run] stopped after {} iterations; state saved{}", drive_.completed(),
                                           saved_.empty() ? " nowhere" : " in " + saved_));
    return {drive_.completed() - before, drive_.last_metrics()};
  }

 private:
  void after_iteration(const IterationResult& result) {
    if (checkpoints_) checkpoints_->poll();
    if (options_.on_iteration) options_.on_iteration(result);
  }

  void report_end() {
    if (!options_.on_end) return;
    end_.memory = nlohmann::json::array();
    for (const message::MemoryReport& report : driver_.request(all_workers(driver_), message::AskMemory()))
      end_.memory.push_back(report.memory);
    options_.on_end(end_);
  }

  // Saves a model that takes turns, while it is on its workers. These models come first in a checkpoint, one after the
  // other.
  void save_model(int64_t iteration, const std::string& model) {
    if (saving_.empty()) saving_ = checkpoints_->begin(iteration + 1);
    driver_.request(graph::workers_of(drive_.graph(), placement_, model),
                    message::Save{.directory = saving_, .models = {model}});
    saved_in_turn_.insert(model);
  }

  void save(int64_t iteration) {
    const std::string begun = std::exchange(saving_, "");
    const std::string directory = begun.empty() ? checkpoints_->begin(iteration + 1) : begun;
    message::Save rest{.directory = directory};
    for (const auto& [model, content] : drive_.graph().models)
      if (!saved_in_turn_.contains(model)) rest.models.push_back(model);
    saved_in_turn_.clear();
    driver_.request(all_workers(driver_), rest);  // first, as answers bring the puts of workers
    save_state(drive_, directory + "/drive");
    save_state(driver_.store(), directory + "/store");
    for (size_t i = 0; i < options_.state.size(); ++i)
      save_state(*options_.state[i], fmt::format("{}/state-{}", directory, i));
    saved_ = checkpoints_->commit();
  }

  // Loads the best checkpoint into the models, to export it. A run that was stopped may have measured none, or have
  // changed its weights since the last one.
  void load_best(graph::StopKind end) {
    const std::string best = checkpoints_->best();
    if (best.empty())
      return base::log_warning("{}: no checkpoint that is left was measured: the last state is exported, not the best",
                               options_.directory);
    if (best != saved_ || end == graph::StopKind::kAsked) {
      drive_.bring("");
      driver_.request(all_workers(driver_), message::Load{.directory = best});
    }
    end_.exported = best;
  }

  void load(const std::string& directory) {
    check_form(directory);
    load_state(drive_, directory + "/drive");
    load_state(driver_.store(), directory + "/store");
    for (size_t i = 0; i < options_.state.size(); ++i)
      load_state(*options_.state[i], fmt::format("{}/state-{}", directory, i));
    driver_.request(all_workers(driver_), message::Load{.directory = directory});
    saved_ = directory;
  }

  void export_model(const std::string& model, const std::string& directory) {
    host::ensure_directory(directory);
    if (placement_.swaps(model)) drive_.bring(model);
    const std::vector<message::Exported> answers = driver_.request(
        holders_of(model), message::Export{.model = model,
                                           .directory = directory,
                                           .iteration = options_.schedule.first_iteration + drive_.completed()});
    if (answers.at(0).checksum) end_.checksums[model] = *answers[0].checksum;
  }

  // Returns the workers that together hold the model's first copy, in order; these are all workers when ranks share the
  // weights.
  std::vector<int> holders_of(const std::string& model) const {
    const int first = graph::workers_of(drive_.graph(), placement_, model).at(0);
    const nlohmann::json calls = calls_of(drive_.graph(), options_);
    const std::map<std::string, comm::Mesh> meshes = meshes_of(drive_.graph(), placement_, model, first);
    for (const auto& function : calls.value(model, std::vector<std::string>())) {
      const auto mesh = meshes.find(function);
      if (mesh == meshes.end()) continue;
      if (placement_.layout(model, function).zero > graph::kMostWholeZero) return mesh->second.ranks();
      std::vector<int> holders = mesh->second.ranks();
      const int expert_ranks = placement_.layout(model, function).ep;
      std::erase_if(holders, [&](int rank) { return copy_number(mesh->second, rank) >= expert_ranks; });
      return holders;
    }
    return {first};
  }

  const graph::Placement& placement_;
  const RunOptions& options_;
  ResultJournal journal_;
  Driver driver_;
  Drive drive_;
  std::optional<Checkpoints> checkpoints_;
  std::string saved_;
  std::string saving_;                   // directory of a checkpoint that swapped models have begun, or ""
  std::set<std::string> saved_in_turn_;  // models that are already saved there
  RunEnd end_;
};

}  // namespace

std::vector<graph::EvaluationGraph> graphs_of(const std::vector<Evaluation>& evaluations) {
  std::vector<graph::EvaluationGraph> graphs;
  for (const Evaluation& of : evaluations)
    graphs.push_back({of.name, of.graph, of.rows, of.group_size, of.every, of.first});
  return graphs;
}

RunResult run(const graph::Graph& own, const graph::Placement& placement, const Registry& registry,
              const RunOptions& options) {
  const graph::Graph graph = graph::with_models_of(own, graphs_of(options.evaluations));
  graph::validate(graph);
  graph::validate(graph, placement);
  check_runnable(graph);
  check_cuts(placement, calls_of(graph, options));
  for (const graph::WeightLink& link : graph.links) {
    const auto module = options.modules.find(link.destination);
    if (module == options.modules.end() || !module->second.own_weights) check_link(link, graph, placement);
  }
  for (const Evaluation& evaluation : options.evaluations) check_runnable(evaluation.graph);
  if (options.memory_budget_bytes > 0) memory_within_budget(graph, placement, registry, options);
  if (!options.next_rows) throw base::InputError(base::expectation("run", "a source of rows", "none"));
  if (!options.directory.empty()) host::ensure_directory(options.directory);
  if (!options.swap_directory.empty()) host::ensure_directory(options.swap_directory);
  const tensor::MemoryScope tagged(kDriverAccount, kRowMemory);
  return Execution(graph, placement, registry, options).run();
}

int run_worker(const std::string& address, const Registry& registry) {
  cluster::join_driver(address, [&](const cluster::WorkerSpec& spec) -> std::unique_ptr<cluster::Handler> {
    return std::make_unique<WorkerHost>(spec, registry);
  });
  return 0;
}

}  // namespace collimate::flow
