#include <algorithm>
#include <memory>

#include "collimate/flow/drive.h"
#include "collimate/flow/payload.h"

namespace collimate::flow {

void Drive::transition(const graph::Action& action) {
  if (action.transition == graph::TransitionKind::kWeights) return transfer(action);
  bool load = action.transition == graph::TransitionKind::kLoad;
  nlohmann::json header = {{"type", "reside"}, {"model", action.model}, {"on_device", load}};
  ask(action.worker, std::move(header), nullptr, [this, action, load](const cluster::Message&) {
    events_.push_back(graph::Event::resident_at(action.model, action.worker, load));
  });
}

// Every worker of the destination that holds the source too takes the weights there; the others get them from the
// source's first worker.
void Drive::transfer(const graph::Action& action) {
  std::vector<int> from = graph::workers_of(parts_.graph, parts_.placement, action.source);
  std::vector<int> to = {action.worker};
  if (action.worker < 0) to = graph::workers_of(parts_.graph, parts_.placement, action.model);
  auto missing = std::make_shared<size_t>(to.size());
  auto arrived = [this, action, missing] {
    if (--*missing > 0) return;
    events_.push_back(graph::Event::weights_at(action.model, action.version, action.worker));
  };
  std::vector<int> elsewhere;
  for (int worker : to) {
    if (std::find(from.begin(), from.end(), worker) == from.end()) {
      elsewhere.push_back(worker);
      continue;
    }
    nlohmann::json header = {{"type", "weights_here"}, {"source", action.source}, {"destination", action.model}};
    ask(worker, std::move(header), nullptr, [arrived](const cluster::Message&) { arrived(); });
  }
  if (!elsewhere.empty()) transfer_between(from.at(0), elsewhere, action, arrived);
}

void Drive::transfer_between(int from, const std::vector<int>& to, const graph::Action& action,
                             const std::function<void()>& arrived) {
  nlohmann::json out = {{"type", "weights_out"}, {"source", action.source}, {"destination", action.model}};
  ask(from, std::move(out), nullptr, [this, to, action, arrived](const cluster::Message& message) {
    auto payload = std::make_shared<WeightPayload>(transfer_of(message));
    nlohmann::json in = {{"type", "weights_in"}, {"source", action.source}, {"destination", action.model}};
    for (int worker : to) ask(worker, in, payload, [arrived](const cluster::Message&) { arrived(); });
  });
}

}  // namespace collimate::flow
