#include "collimate/graph/schedule_transfers.h"

#include <algorithm>
#include <set>

#include "collimate/base/at.h"
#include "collimate/base/contains.h"
#include "collimate/base/error.h"

namespace collimate::graph {

Transfers::Transfers(std::shared_ptr<const ScheduleFacts> facts) : facts_(std::move(facts)) {
  for (const auto& [name, model] : facts_->graph.models)
    if (facts_->graph.trains(name)) trained_[name] = facts_->options.first_iteration;
  reset();
}

void Transfers::request_all() {
  for (size_t i = 0; i < facts_->graph.links.size(); ++i) request(static_cast<int>(i), -1);
  // Where some workers have weights already, a transfer to all may have to wait, so workers without weights get their
  // own.
  if (std::all_of(versions_.begin(), versions_.end(), [](const auto& entry) { return entry.second < 0; })) return;
  for (const auto& [place, version] : versions_)
    if (version < 0) request_for(place.second);
}

void Transfers::request_for(int worker) {
  for (size_t i = 0; i < facts_->graph.links.size(); ++i)
    if (versions_.count({facts_->graph.links[i].destination, worker})) request(static_cast<int>(i), worker);
}

void Transfers::trained(const std::string& model, int64_t version) {
  trained_[model] = version;
  for (size_t i = 0; i < facts_->graph.links.size(); ++i) {
    const WeightLink& link = facts_->graph.links[i];
    if (link.source == model && version % link.every == 0) request(static_cast<int>(i), -1);
  }
}

void Transfers::reset() {
  transfers_.clear();
  versions_.clear();
  for (const WeightLink& link : facts_->graph.links)
    for (int worker : facts_->workers.at(link.destination)) versions_[{link.destination, worker}] = -1;
}

void Transfers::restart() {
  const auto had = versions_;
  reset();
  if (facts_->options.exact_versions) versions_ = had;
}

void Transfers::hold(const Workers& workers, const std::function<bool(const Transfer&)>& early) {
  for (Transfer& transfer : transfers_) {
    const std::vector<int> targets = targets_of(transfer, workers);
    const bool fills = std::all_of(targets.begin(), targets.end(), [&](int index) {
      return versions_.at({link(transfer).destination, index}) < 0;
    });
    transfer.early = !transfer.running && !fills && early(transfer);
  }
}

bool Transfers::lacking(const Workers& workers) const {
  return std::any_of(versions_.begin(), versions_.end(), [&](const auto& entry) {
    const auto& [place, version] = entry;
    return version < 0 && (!workers[place.second].lost || workers.awaited());
  });
}

bool Transfers::uneven(const std::string& destination) const {
  std::set<int64_t> versions;
  for (const int worker : facts_->workers.at(destination))
    if (const int64_t version = versions_.at({destination, worker}); version >= 0) versions.insert(version);
  return versions.size() > 1;
}

bool Transfers::uneven() const {
  return std::any_of(facts_->graph.links.begin(), facts_->graph.links.end(),
                     [&](const WeightLink& link) { return uneven(link.destination); });
}

void Transfers::request_even() {
  for (size_t i = 0; i < facts_->graph.links.size(); ++i)
    if (uneven(facts_->graph.links[i].destination)) request(static_cast<int>(i), -1);
}

bool Transfers::all_early() const {
  return std::all_of(transfers_.begin(), transfers_.end(), [](const Transfer& transfer) { return transfer.early; });
}

bool Transfers::running() const {
  return std::any_of(transfers_.begin(), transfers_.end(), [](const Transfer& transfer) { return transfer.running; });
}

// A later transfer replaces those to the same workers that have not begun. A transfer to all also replaces those to
// single workers, except with exact_versions, when it may have to wait and one to a worker that is back does not.
void Transfers::request(int link, int worker) {
  const bool all = worker < 0 && !facts_->options.exact_versions;
  std::erase_if(transfers_, [&](const Transfer& other) {
    return other.link == link && !other.running && (all || other.worker == worker);
  });
  transfers_.push_back({link, trained_[base::at(facts_->graph.links, link).source], worker});
}

void Transfers::prune(const Workers& workers) {
  std::erase_if(transfers_, [&](const Transfer& transfer) { return targets_of(transfer, workers).empty(); });
}

// Returns the workers of the destination that are there to receive.
std::vector<int> Transfers::targets_of(const Transfer& transfer, const Workers& workers) const {
  if (transfer.running) return transfer.targets;
  std::vector<int> targets;
  for (int index : facts_->workers.at(link(transfer).destination))
    if (!workers[index].lost && (transfer.worker < 0 || transfer.worker == index)) targets.push_back(index);
  return targets;
}

std::vector<int> Transfers::workers_of(const Transfer& transfer, const Workers& workers) const {
  std::vector<int> all = facts_->workers.at(link(transfer).source);
  for (int index : targets_of(transfer, workers))
    if (!base::contains(all, index)) all.push_back(index);
  return all;
}

std::vector<std::string> Transfers::models_on(const Transfer& transfer, int worker, const Workers& workers) const {
  const WeightLink& ends = link(transfer);
  if (!facts_->memory.in_place.contains(ends.destination)) return {ends.source, ends.destination};
  const std::vector<int>& from = facts_->workers.at(ends.source);
  const std::vector<int> to = targets_of(transfer, workers);
  const auto reads_there = [&](int index) { return base::contains(from, index); };
  std::vector<std::string> models;
  if (base::contains(from, worker) && !std::all_of(to.begin(), to.end(), reads_there)) models.push_back(ends.source);
  if (base::contains(to, worker) && !reads_there(worker)) models.push_back(ends.destination);
  return models;
}

bool Transfers::uses_destination(const Transfer& transfer, const Task& task) const {
  return base::contains(facts_->node(task).models, link(transfer).destination);
}

bool Transfers::may_stay(const Transfer& transfer, const Task& task) const {
  return facts_->options.update_in_flight && uses_destination(transfer, task) && facts_->node(task).spec->streams;
}

bool Transfers::waits_for_destination(const Transfer& transfer, const Workers& workers) const {
  for (int index : targets_of(transfer, workers)) {
    const std::optional<Task>& task = workers[index].task;
    if (task && uses_destination(transfer, *task) && !may_stay(transfer, *task)) return true;
  }
  return false;
}

Transfers::Step Transfers::step(const Transfer& transfer, const Workers& workers) const {
  const bool destination_first = waits_for_destination(transfer, workers);
  Step step{{}, !destination_first};
  for (int index : destination_first ? targets_of(transfer, workers) : workers_of(transfer, workers)) {
    const WorkerState& state = workers[index];
    step.begins = step.begins && !state.transferring && !state.lost;
    if (!state.task || may_stay(transfer, *state.task)) continue;
    step.begins = false;
    if (!destination_first || uses_destination(transfer, *state.task)) step.cut.push_back(*state.task);
  }
  return step;
}

const Transfer& Transfers::begin(size_t index, Workers& workers) {
  Transfer& transfer = transfers_[index];
  transfer.targets = targets_of(transfer, workers);
  transfer.running = true;
  transfer.version = trained_[link(transfer).source];
  for (int target : transfer.targets) {
    const std::optional<Task>& task = workers[target].task;
    transfer.paused = transfer.paused || (task && uses_destination(transfer, *task));
  }
  for (int taken : workers_of(transfer, workers)) workers[taken].transferring = true;
  return transfer;
}

// Takes a transfer off the list and frees its workers.
Transfer Transfers::end(size_t index, Workers& workers) {
  Transfer ended = std::move(transfers_[index]);
  transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(index));
  for (int freed : workers_of(ended, workers)) workers[freed].transferring = false;
  return ended;
}

std::optional<Transfer> Transfers::arrived(const std::string& model, int worker, int64_t version, Workers& workers) {
  for (size_t i = 0; i < transfers_.size(); ++i) {
    const Transfer& transfer = transfers_[i];
    if (!transfer.running || link(transfer).destination != model || transfer.worker != worker) continue;
    COLLIMATE_CHECK(version == transfer.version, "weights of {} at {}, not at {}", model, version, transfer.version);
    for (int target : transfer.targets) versions_[{model, target}] = version;
    return end(i, workers);
  }
  return std::nullopt;
}

std::vector<Transfer> Transfers::lost(int worker, Workers& workers) {
  std::vector<Transfer> ended;
  for (size_t i = 0; i < transfers_.size();) {
    Transfer& transfer = transfers_[i];
    const bool source_lost = base::contains(facts_->workers.at(link(transfer).source), worker);
    if (transfer.running && !source_lost) std::erase(transfer.targets, worker);
    if (!transfer.running || (!source_lost && !transfer.targets.empty())) {
      ++i;
      continue;
    }
    ended.push_back(end(i, workers));
    if (source_lost) transfers_.push_back({ended.back().link, ended.back().version, ended.back().worker});
  }
  workers[worker].transferring = false;
  for (auto& [place, version] : versions_)
    if (place.second == worker) version = -1;
  return ended;
}

bool Transfers::blocks(const NodeFacts& node, const Replica& replica, const Workers& workers) const {
  for (const Transfer& transfer : transfers_) {
    if (transfer.running) continue;
    if (node.writes && node.models[0] == link(transfer).source) return true;
    if (transfer.early) continue;
    const bool destination_first = waits_for_destination(transfer, workers);
    if (destination_first && !base::contains(node.models, link(transfer).destination)) continue;
    const std::vector<int> kept = destination_first ? targets_of(transfer, workers) : workers_of(transfer, workers);
    for (int index : replica)
      if (base::contains(kept, index)) return true;
  }
  return false;
}

bool Transfers::fresh(const NodeFacts& node, const Replica& replica, int64_t trainings) const {
  for (const WeightLink& link : facts_->graph.links) {
    if (!base::contains(node.models, link.destination)) continue;
    const int64_t wanted = std::max(facts_->options.first_iteration, trainings / link.every * link.every);
    for (int index : replica) {
      auto found = versions_.find({link.destination, index});
      if (found != versions_.end() && found->second < wanted) return false;
    }
  }
  return true;
}

}  // namespace collimate::graph
