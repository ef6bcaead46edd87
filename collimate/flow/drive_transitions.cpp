#include <algorithm>
#include <memory>

#include "collimate/flow/drive.h"

namespace collimate::flow {

template <class Asked>
void Drive::ask(int worker, Asked asked, std::function<void(const typename Asked::Answer&)> answer) {
  asked.request = next_ask_--;
  answers_[asked.request] = [answer = std::move(answer)](Received received) {
    answer(answer_to<Asked>(std::move(received)));
  };
  driver_.send(worker, std::move(asked));
}

void Drive::transition(const graph::Action& action) {
  if (action.transition == graph::TransitionKind::kWeights) return transfer(action);
  bool load = action.transition == graph::TransitionKind::kLoad;
  ask(action.worker, message::Reside{.model = action.model, .on_device = load},
      [this, action, load](const message::Done&) {
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
    ask(worker, message::WeightsHere{.source = action.source, .destination = action.model},
        [arrived](const message::Done&) { arrived(); });
  }
  if (!elsewhere.empty()) transfer_between(from.at(0), elsewhere, action, arrived);
}

void Drive::transfer_between(int from, const std::vector<int>& to, const graph::Action& action,
                             const std::function<void()>& arrived) {
  ask(from, message::WeightsOut{.source = action.source}, [this, to, action, arrived](const message::Weights& weights) {
    const message::WeightsIn in{.source = action.source, .destination = action.model, .transfer = weights.transfer};
    for (int worker : to) ask(worker, in, [arrived](const message::Done&) { arrived(); });
  });
}

}  // namespace collimate::flow
