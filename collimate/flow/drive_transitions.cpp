#include <algorithm>
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
      [this, action, load](const message::Resided& done) {
        note_move(action, done);
        events_.push_back(graph::Event::resident_at(action.model, action.worker, load));
      });
}

// Notes how long a move took. The time counts for the first iteration that is not complete.
void Drive::note_move(const graph::Action& action, const message::Resided& done) {
  const int64_t number = parts_.schedule.first_iteration + reported_;
  swap_seconds_[action.worker] += done.end_seconds - done.begin_seconds;
  base::SpanRecorder* spans = driver_.options().spans;
  if (spans == nullptr) return;
  const auto at = [&](double seconds) {
    return spans->now_ns() - static_cast<int64_t>((base::now_seconds() - seconds) * 1e9);
  };
  const bool load = action.transition == graph::TransitionKind::kLoad;
  spans->record(fmt::format("{} {}", load ? "load" : "off-load", action.model), action.worker, graph::step_of(number),
                at(done.begin_seconds), at(done.end_seconds));
}

// Begins a transfer. Every worker of the destination that has the same part of the source takes the weights there; the
// others get them from the source's workers, bucket by bucket.
void Drive::transfer(const graph::Action& action) {
  const graph::LinkEnds ends = graph::link_ends(parts_.graph, parts_.placement, action.source, action.model,
                                                calls_of(parts_.graph, driver_.options()));
  std::vector<int> to = {action.worker};
  if (action.worker < 0) to = graph::workers_of(parts_.graph, parts_.placement, action.model);
  std::erase_if(to, [&](int worker) { return gone_.contains(worker); });  // they get weights when they are back
  const std::vector<int> from = graph::workers_of(parts_.graph, parts_.placement, action.source);
  auto moving = std::make_shared<Moving>(Moving{
      .from = from,
      .waiting = {to.begin(), to.end()},
      .arrived = graph::Event::weights_at(action.model, action.version, action.worker),
  });
  moving_.push_back(moving);
  message::WeightsOut asked{.source = action.source, .destination = action.model};
  for (int worker : to) {
    if (!ends.is_here(worker)) {
      asked.workers.push_back(worker);
      continue;
    }
    ask(worker, message::WeightsHere{.source = action.source, .destination = action.model},
        [this, moving, worker](const message::Done&) { settle(*moving, worker); });
  }
  if (!asked.workers.empty()) transfer_between(moving, asked);
}

void Drive::transfer_between(const std::shared_ptr<Moving>& moving, message::WeightsOut asked) {
  const int64_t number = ++transfers_;
  for (int worker : asked.workers) {
    asked.to = worker;
    const message::WeightsEnd end{.source = asked.source, .destination = asked.destination, .transfer = number};
    auto missing = std::make_shared<size_t>(moving->from.size());
    const auto sent = [this, moving, worker, end, missing] {
      if (--*missing == 0) ask(worker, end, [this, moving, worker](const message::Done&) { settle(*moving, worker); });
    };
    for (int source : moving->from) pass_bucket(moving, source, asked, number, sent);
  }
}

// Asks for a bucket and passes it on. The next one is asked for when this one has arrived, so one is on its way for
// each pair of workers. Nothing more goes to a worker that has died meanwhile; its next life gets a transfer of its
// own.
void Drive::pass_bucket(const std::shared_ptr<Moving>& moving, int from, const message::WeightsOut& asked,
                        int64_t transfer, const std::function<void()>& sent) {
  ask(from, asked, [this, moving, from, asked, transfer, sent](const message::Weights& weights) {
    if (!moving->waiting.contains(asked.to)) return;
    if (weights.bucket == nullptr) return sent();
    const message::WeightsIn in{
        .source = asked.source, .destination = asked.destination, .transfer = transfer, .bucket = weights.bucket};
    ask(asked.to, in, [this, moving, from, asked, transfer, sent](const message::Done&) {
      if (!moving->waiting.contains(asked.to)) return;
      message::WeightsOut next = asked;
      ++next.bucket;
      pass_bucket(moving, from, next, transfer, sent);
    });
  });
}

void Drive::settle(Moving& moving, int worker) {
  if (moving.waiting.erase(worker) == 0 || !moving.waiting.empty()) return;
  events_.push_back(moving.arrived);
  std::erase_if(moving_, [&](const auto& one) { return one.get() == &moving; });
}

void Drive::forget_transfers_of(int worker) {
  for (const auto& moving : std::vector(moving_)) {
    settle(*moving, worker);
    if (std::ranges::find(moving->from, worker) == moving->from.end()) continue;
    moving->waiting.clear();  // the schedule begins the transfer anew
    std::erase(moving_, moving);
  }
}

}  // namespace collimate::flow
