#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

// A weight transfer waits in two steps. While a task of the destination runs, only the destination's tasks and the
// source's training are kept from starting; that task is closed so that it ends by itself. Then all workers of both
// sides are kept free until the transfer has taken place. With update_in_flight a streaming task of the destination
// stays and is paused.
namespace collimate::graph {
namespace {

template <class T>
bool contains(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

void ScheduleCore::request_transfers(const std::string& source) {
  for (size_t i = 0; i < facts_->graph.links.size(); ++i) {
    const WeightLink& link = facts_->graph.links[i];
    if (link.source == source && trained_[source] % link.every == 0)
      request_transfer(static_cast<int>(i), trained_[source], -1);
  }
}

void ScheduleCore::request_transfer(int link, int64_t version, int worker) {
  const auto superseded = [&](const Transfer& other) {
    return other.link == link && !other.running && (worker < 0 || other.worker == worker);
  };
  transfers_.erase(std::remove_if(transfers_.begin(), transfers_.end(), superseded), transfers_.end());
  transfers_.push_back({link, version, worker});
  changed_ = true;
}

void ScheduleCore::advance_transfers() {
  for (size_t i = 0; i < transfers_.size();) {
    if (targets_of(transfers_[i]).empty()) {
      transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      if (!transfers_[i].running) advance(transfers_[i]);
      ++i;
    }
  }
}

// Workers of the destination that are there to receive.
std::vector<int> ScheduleCore::targets_of(const Transfer& transfer) const {
  if (transfer.running) return transfer.targets;
  std::vector<int> targets;
  for (int index : facts_->workers.at(base::at(facts_->graph.links, transfer.link).destination))
    if (!workers_[index].lost && (transfer.worker < 0 || transfer.worker == index)) targets.push_back(index);
  return targets;
}

std::vector<int> ScheduleCore::workers_of(const Transfer& transfer) const {
  std::vector<int> all = facts_->workers.at(base::at(facts_->graph.links, transfer.link).source);
  for (int index : targets_of(transfer))
    if (!contains(all, index)) all.push_back(index);
  return all;
}

bool ScheduleCore::uses_destination(const Transfer& transfer, const Task& task) const {
  return contains(facts_->node(task.node).models, base::at(facts_->graph.links, transfer.link).destination);
}

bool ScheduleCore::may_stay(const Transfer& transfer, const Task& task) const {
  return options().update_in_flight && uses_destination(transfer, task) && facts_->node(task.node).spec->streams;
}

bool ScheduleCore::waits_for_destination(const Transfer& transfer) const {
  for (int index : targets_of(transfer)) {
    const std::optional<Task>& task = workers_[index].task;
    if (task && uses_destination(transfer, *task) && !may_stay(transfer, *task)) return true;
  }
  return false;
}

void ScheduleCore::advance(Transfer& transfer) {
  const bool destination_first = waits_for_destination(transfer);
  bool free = !destination_first;
  for (int index : destination_first ? targets_of(transfer) : workers_of(transfer)) {
    const std::optional<Task> task = workers_[index].task;
    free = free && !workers_[index].transferring && !workers_[index].lost;
    if (!task || may_stay(transfer, *task)) continue;
    free = false;
    if (!destination_first || uses_destination(transfer, *task)) cut(*task);
  }
  if (free) run_transfer(transfer);
}

void ScheduleCore::run_transfer(Transfer& transfer) {
  const WeightLink& link = base::at(facts_->graph.links, transfer.link);
  transfer.targets = targets_of(transfer);
  transfer.running = true;
  transfer.version = trained_[link.source];
  for (int index : transfer.targets) {
    const std::optional<Task>& task = workers_[index].task;
    transfer.paused = transfer.paused || (task && uses_destination(transfer, *task));
  }
  for (int index : workers_of(transfer)) workers_[index].transferring = true;
  if (transfer.paused) emit(ActionKind::kPause).model = link.destination;
  Action& action = emit(ActionKind::kTransition);
  action.transition = TransitionKind::kWeights;
  action.source = link.source;
  action.model = link.destination;
  action.worker = transfer.worker;
  action.version = transfer.version;
}

// Frees the workers of a transfer that runs.
void ScheduleCore::release(const Transfer& transfer) {
  for (int index : workers_of(transfer)) workers_[index].transferring = false;
  if (transfer.paused) emit(ActionKind::kResume).model = base::at(facts_->graph.links, transfer.link).destination;
  changed_ = true;
}

void ScheduleCore::weights_at(const Event& event) {
  for (size_t i = 0; i < transfers_.size(); ++i) {
    const Transfer transfer = transfers_[i];
    const std::string& destination = base::at(facts_->graph.links, transfer.link).destination;
    if (!transfer.running || destination != event.model || transfer.worker != event.worker) continue;
    COLLIMATE_CHECK(event.version == transfer.version, "weights of {} at {}, not at {}", event.model, event.version,
                    transfer.version);
    for (int index : transfer.targets) versions_[{destination, index}] = transfer.version;
    transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(i));
    return release(transfer);
  }
}

bool ScheduleCore::blocked_by_transfer(int node, const Replica& workers) const {
  const NodeFacts& facts = facts_->node(node);
  for (const Transfer& transfer : transfers_) {
    if (transfer.running) continue;
    const WeightLink& link = base::at(facts_->graph.links, transfer.link);
    if (facts.writes && facts_->graph.node(node).model == link.source) return true;
    const bool destination_first = waits_for_destination(transfer);
    if (destination_first && !contains(facts.models, link.destination)) continue;
    const std::vector<int> kept = destination_first ? targets_of(transfer) : workers_of(transfer);
    for (int index : workers)
      if (contains(kept, index)) return true;
  }
  return false;
}

}  // namespace collimate::graph
