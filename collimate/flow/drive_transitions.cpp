#include <memory>

#include "collimate/flow/drive.h"
#include "collimate/flow/planned_memory.h"
#include "collimate/graph/weight_ranks.h"

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

// Every worker of the destination that has the same part of the source takes the weights there; the others get them
// from the source's workers, bucket by bucket.
void Drive::transfer(const graph::Action& action) {
  const graph::LinkEnds ends = graph::link_ends(parts_.graph, parts_.placement, action.source, action.model,
                                                calls_of(parts_.graph, driver_.options()));
  std::vector<int> to = {action.worker};
  if (action.worker < 0) to = graph::workers_of(parts_.graph, parts_.placement, action.model);
  auto missing = std::make_shared<size_t>(to.size());
  auto arrived = [this, action, missing] {
    if (--*missing > 0) return;
    events_.push_back(graph::Event::weights_at(action.model, action.version, action.worker));
  };
  message::WeightsOut asked{.source = action.source, .destination = action.model};
  for (int worker : to) {
    if (!ends.is_here(worker)) {
      asked.workers.push_back(worker);
      continue;
    }
    ask(worker, message::WeightsHere{.source = action.source, .destination = action.model},
        [arrived](const message::Done&) { arrived(); });
  }
  const std::vector<int> from = graph::workers_of(parts_.graph, parts_.placement, action.source);
  if (!asked.workers.empty()) transfer_between(from, asked, arrived);
}

void Drive::transfer_between(const std::vector<int>& from, message::WeightsOut asked,
                             const std::function<void()>& arrived) {
  const int64_t number = ++transfers_;
  for (int worker : asked.workers) {
    asked.to = worker;
    const message::WeightsEnd end{.source = asked.source, .destination = asked.destination, .transfer = number};
    auto missing = std::make_shared<size_t>(from.size());
    const auto sent = [this, worker, end, missing, arrived] {
      if (--*missing > 0) return;
      ask(worker, end, [arrived](const message::Done&) { arrived(); });
    };
    for (int source : from) pass_bucket(source, asked, number, sent);
  }
}

// A bucket is asked for when the one ahead of it is in its place: of each pair of workers one is on its way.
void Drive::pass_bucket(int from, const message::WeightsOut& asked, int64_t transfer,
                        const std::function<void()>& sent) {
  ask(from, asked, [this, from, asked, transfer, sent](const message::Weights& weights) {
    if (weights.bucket == nullptr) return sent();
    const message::WeightsIn in{
        .source = asked.source, .destination = asked.destination, .transfer = transfer, .bucket = weights.bucket};
    ask(asked.to, in, [this, from, asked, transfer, sent](const message::Done&) {
      message::WeightsOut next = asked;
      ++next.bucket;
      pass_bucket(from, next, transfer, sent);
    });
  });
}

}  // namespace collimate::flow
