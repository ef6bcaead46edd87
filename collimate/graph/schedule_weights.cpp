#include <algorithm>
#include <set>

#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

// Returns whether all those of the models that are swapped are on those of the workers that they belong to. If not,
// asks for what is missing. Models that running tasks use stay.
bool ScheduleCore::resident(const std::vector<std::string>& models, const std::vector<int>& workers) {
  bool all = true;
  std::vector<Swaps::Move> moves;
  for (int index : workers) {
    std::vector<std::string> used = models;
    if (const std::optional<Task>& task = workers_[index].task)
      used.insert(used.end(), facts_->node(*task).models.begin(), facts_->node(*task).models.end());
    all = swaps_.prepare(facts_->room(index), used, moves) && all;
  }
  emit(moves);
  return all;
}

void ScheduleCore::emit(const std::vector<Swaps::Move>& moves) {
  for (const Swaps::Move& move : moves) {
    Action& action = emit(ActionKind::kTransition);
    action.transition = move.load ? TransitionKind::kLoad : TransitionKind::kOffload;
    action.model = move.model;
    action.worker = move.worker;
  }
}

std::vector<Action> ScheduleCore::bring(const std::string& model, bool at_setup) {
  COLLIMATE_CHECK(at_setup || stopped_, "models are brought by hand when nothing else moves them");
  if (at_setup) swaps_ = Swaps();
  actions_.clear();
  const auto workers = facts_->workers.find(model);
  emit(swaps_.alone(model, workers == facts_->workers.end() ? std::vector<int>() : workers->second));
  return actions_;
}

// Begins the transfers that can begin. A transfer that waits for models to be on its workers has these for itself. A
// save goes before transfers, except for those that bring what it saves.
void ScheduleCore::advance_transfers() {
  if (barrier_.save() && !save_lacks_weights()) return;
  transfers_.prune(workers_);
  hold_early_transfers();
  std::set<int> taken;
  for (size_t i = 0; i < transfers_.all().size(); ++i) {
    if (transfers_.all()[i].running || transfers_.all()[i].early) continue;
    const std::vector<int> workers = transfers_.workers_of(transfers_.all()[i], workers_);
    if (std::any_of(workers.begin(), workers.end(), [&](int index) { return taken.contains(index); })) continue;
    if (!advance_transfer(i)) taken.insert(workers.begin(), workers.end());
  }
}

// With exact_versions a transfer waits until all iterations that use older weights have drawn. These iterations are all
// open, except those beyond the run's end, which come when it goes on; the last weights wait for these. During a save
// only transfers begin that bring weights to workers without any, or equal weights to all.
void ScheduleCore::hold_early_transfers() {
  if (!options().exact_versions) return;
  if (barrier_.save() && !transfers_.running()) transfers_.request_even();
  const int64_t end = options().iterations;
  transfers_.hold(workers_, [&](const Transfer& transfer) {
    const std::string& model = transfers_.link(transfer).destination;
    if (barrier_.save()) return !transfers_.uneven(model);
    if (barrier_.wanted()) return false;
    if (transfer.version >= end) return facts_->version_for(end) < transfer.version;
    return std::any_of(active_.begin(), active_.end(), [&](const IterationRun& run) {
      return facts_->version_for(run.number) < transfer.version && !has_called(run, model);
    });
  });
}

// Says whether a save has to wait for weights. With exact_versions it needs what links brought: weights that have
// arrived, on workers that have some, and the same on all workers of a model, as a checkpoint is one state.
bool ScheduleCore::save_lacks_weights() const {
  if (!options().exact_versions) return false;
  return transfers_.running() || transfers_.lacking(workers_) || transfers_.uneven();
}

// Says whether nothing more will be asked of the model in the iteration.
bool ScheduleCore::has_called(const IterationRun& run, const std::string& model) const {
  for (size_t n = 0; n < facts_->nodes.size(); ++n) {
    const std::vector<std::string>& models = facts_->nodes[n].models;
    if (std::find(models.begin(), models.end(), model) != models.end() && !run.nodes[n].complete) return false;
  }
  return true;
}

// Returns false when the transfer waits only for models to be loaded or off-loaded.
bool ScheduleCore::advance_transfer(size_t index) {
  const Transfer& transfer = transfers_.all()[index];
  const Transfers::Step step = transfers_.step(transfer, workers_);
  for (const Task& task : step.cut) cut(task);
  if (!step.begins) return true;
  bool all = true;
  for (const int worker : transfers_.workers_of(transfer, workers_)) {
    const std::vector<std::string> models = transfers_.models_on(transfer, worker, workers_);
    if (!models.empty()) all = resident(models, {worker}) && all;  // where empty, nothing moves and what is there stays
  }
  if (!all) return false;
  begin_transfer(index);
  return true;
}

void ScheduleCore::begin_transfer(size_t index) {
  const Transfer& transfer = transfers_.begin(index, workers_);
  const WeightLink& link = transfers_.link(transfer);
  if (transfer.paused) emit(ActionKind::kPause).model = link.destination;
  Action& action = emit(ActionKind::kTransition);
  action.transition = TransitionKind::kWeights;
  action.source = link.source;
  action.model = link.destination;
  action.worker = transfer.worker;
  action.version = transfer.version;
}

void ScheduleCore::weights_at(const Event& event) {
  const std::optional<Transfer> transfer = transfers_.arrived(event.model, event.worker, event.version, workers_);
  if (transfer) ended(*transfer);
}

void ScheduleCore::ended(const Transfer& transfer) {
  if (transfer.paused) emit(ActionKind::kResume).model = transfers_.link(transfer).destination;
  changed_ = true;
}

}  // namespace collimate::graph
