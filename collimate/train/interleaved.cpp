#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/train/pipeline.h"

namespace collimate::train {
namespace {

// Returns the passes of all micro-batches in the order in which a rank takes them forward, or those of backward.
std::vector<StageStep> passes_of(const RankRuns& of, int64_t micro_batches, StageAct act) {
  std::vector<StageStep> passes;
  for (int64_t first = 0; first < micro_batches; first += of.ranks)
    for (int i = 0; i < of.runs; ++i)
      for (int64_t m = first; m < std::min(micro_batches, first + of.ranks); ++m)
        passes.push_back({act, m, act == StageAct::kForward ? i : of.runs - 1 - i});
  return passes;
}

// Returns forwards and backwards of a rank in their order: forwards ahead, then both in turn, then the other backwards.
std::vector<StageStep> in_turn(const RankRuns& of, int64_t micro_batches) {
  const std::vector<StageStep> forward = passes_of(of, micro_batches, StageAct::kForward),
                               backward = passes_of(of, micro_batches, StageAct::kBackward);
  const auto ahead =
      std::min(forward.size(), static_cast<size_t>(2 * (of.ranks - of.rank - 1) + (of.runs - 1) * of.ranks));
  std::vector<StageStep> passes(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(ahead));
  for (size_t i = 0; i < backward.size(); ++i) {
    if (ahead + i < forward.size()) passes.push_back(forward[ahead + i]);
    passes.push_back(backward[i]);
  }
  return passes;
}

// A Timeline runs the passes of all ranks as soon as they have what they read, and notes each rank's steps.
class Timeline {
 public:
  Timeline(const RankRuns& any, const std::function<std::vector<StageStep>(const RankRuns&)>& passes_of_rank)
      : any_(any), ranks_(static_cast<size_t>(any.ranks)) {
    for (int r = 0; r < any.ranks; ++r) at(r).passes = passes_of_rank({r, any.ranks, any.runs});
  }

  // Returns the steps of a rank.
  std::vector<StageStep> steps_of(int rank) {
    while (!ended()) {
      bool moves = false;
      for (int r = 0; r < any_.ranks; ++r) moves = deliver(r) || moves;
      for (int r = 0; r < any_.ranks; ++r) moves = begin_pass(r) || moves;
      if (!moves) wait();
    }
    return std::move(at(rank).steps);
  }

 private:
  // A Transfer is what a pass gives to another rank: its own step, that rank, and the step that receives it.
  struct Transfer {
    StageStep send;
    int to = 0;
    StageStep received;
  };
  struct Rank {
    std::vector<StageStep> passes, steps;
    size_t next = 0;  // of `passes`
    int64_t busy_until = 0;
    std::deque<Transfer> gives;
    std::set<std::tuple<StageAct, int64_t, int>> has;  // received
  };

  Rank& at(int rank) { return base::at(ranks_, rank); }
  bool is_free(int rank) { return at(rank).busy_until <= now_; }
  bool is_first(int rank, int run) const { return rank == 0 && run == 0; }
  bool is_last(int rank, int run) const { return rank + 1 == any_.ranks && run + 1 == any_.runs; }

  bool ended() const {
    return std::ranges::all_of(ranks_,
                               [](const Rank& rank) { return rank.next == rank.passes.size() && rank.gives.empty(); });
  }

  // Gives what a free rank has for others that are free.
  bool deliver(int r) {
    Rank& rank = at(r);
    bool any = false;
    while (is_free(r) && !rank.gives.empty() && is_free(rank.gives.front().to)) {
      const Transfer transfer = rank.gives.front();
      rank.gives.pop_front();
      rank.steps.push_back(transfer.send);
      Rank& other = at(transfer.to);
      other.steps.push_back(transfer.received);
      other.has.emplace(transfer.received.act, transfer.received.micro_batch, transfer.received.run);
      any = true;
    }
    return any;
  }

  // Begins a free rank's next pass if all that it reads is there.
  bool begin_pass(int r) {
    Rank& rank = at(r);
    if (!is_free(r) || !rank.gives.empty() || rank.next == rank.passes.size()) return false;
    const StageStep& pass = rank.passes[rank.next];
    const bool forward = pass.act == StageAct::kForward;
    const bool reads = forward ? !is_first(r, pass.run) : !is_last(r, pass.run);
    if (reads &&
        !rank.has.contains({forward ? StageAct::kReceive : StageAct::kReceiveGradient, pass.micro_batch, pass.run}))
      return false;
    rank.steps.push_back(pass);
    rank.busy_until = now_ + (forward ? 1 : 2);
    ++rank.next;
    if (forward ? !is_last(r, pass.run) : !is_first(r, pass.run)) rank.gives.push_back(transfer_of(r, pass));
    return true;
  }

  Transfer transfer_of(int r, const StageStep& pass) const {
    const int last = any_.ranks - 1;
    if (pass.act == StageAct::kForward)
      return {{StageAct::kSend, pass.micro_batch, pass.run},
              r == last ? 0 : r + 1,
              {StageAct::kReceive, pass.micro_batch, pass.run + (r == last ? 1 : 0)}};
    return {{StageAct::kSendGradient, pass.micro_batch, pass.run},
            r == 0 ? last : r - 1,
            {StageAct::kReceiveGradient, pass.micro_batch, pass.run - (r == 0 ? 1 : 0)}};
  }

  // Lets time pass until a rank is free again.
  void wait() {
    int64_t next = INT64_MAX;
    for (const Rank& rank : ranks_)
      if (rank.busy_until > now_) next = std::min(next, rank.busy_until);
    COLLIMATE_CHECK(next < INT64_MAX, "{} ranks of {} runs wait for ever", any_.ranks, any_.runs);
    now_ = next;
  }

  RankRuns any_;
  std::vector<Rank> ranks_;
  int64_t now_ = 0;
};

// Returns a rank's steps where there are as many micro-batches as full rounds have, without those of the micro-batches
// that are missing. To leave out all of a micro-batch takes nothing from the others that they wait for.
std::vector<StageStep> steps_of(const RankRuns& of, int64_t micro_batches,
                                const std::function<std::vector<StageStep>(const RankRuns&, int64_t)>& passes) {
  const int64_t all = (micro_batches + of.ranks - 1) / of.ranks * of.ranks;
  std::vector<StageStep> steps = Timeline(of, [&](const RankRuns& one) { return passes(one, all); }).steps_of(of.rank);
  std::erase_if(steps, [&](const StageStep& step) { return step.micro_batch >= micro_batches; });
  return steps;
}

}  // namespace

std::vector<StageStep> interleaved(const RankRuns& of, int64_t micro_batches) {
  return steps_of(of, micro_batches, in_turn);
}

std::vector<StageStep> interleaved_forwards(const RankRuns& of, int64_t micro_batches) {
  return steps_of(of, micro_batches,
                  [](const RankRuns& one, int64_t all) { return passes_of(one, all, StageAct::kForward); });
}

MostKept most_kept(const std::vector<StageStep>& steps) {
  MostKept most;
  int64_t forwards = 0;
  std::set<std::tuple<StageAct, int64_t, int>> waiting;
  for (const StageStep& step : steps) {
    if (step.act == StageAct::kForward) ++forwards;
    if (step.act == StageAct::kBackward) --forwards;
    if (step.act == StageAct::kReceive || step.act == StageAct::kReceiveGradient)
      waiting.emplace(step.act, step.micro_batch, step.run);
    most.forwards = std::max(most.forwards, forwards);
    most.received = std::max(most.received, std::ssize(waiting));
    if (step.act == StageAct::kForward) waiting.erase({StageAct::kReceive, step.micro_batch, step.run});
    if (step.act == StageAct::kBackward) waiting.erase({StageAct::kReceiveGradient, step.micro_batch, step.run});
  }
  return most;
}

}  // namespace collimate::train
