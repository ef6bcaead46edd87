#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace collimate::train {

// A pipeline stage does these acts with a micro-batch. Transfers are between neighbouring stages, and both wait for
// each other: a send returns when it has been received.
enum class StageAct {
  kReceive,  // the stream of the stage before
  kForward,
  kSend,             // the stream, to the stage behind
  kReceiveGradient,  // the gradient of the stream that was sent, from the stage behind
  kBackward,
  kSendGradient  // the gradient of the stream that was received, to the stage before
};

struct StageStep {
  StageAct act = StageAct::kForward;
  int64_t micro_batch = 0;
  int run = 0;  // which of the rank's runs of blocks, where it has several
  bool operator==(const StageStep&) const = default;
};

// Returns the steps of one stage by "one forward, one backward" (Narayanan et al. 2021, arXiv 2104.04473, without
// interleaving): a stage runs ahead by as many micro-batches as there are stages behind it, then takes forwards and
// backwards in turn, so that it keeps at most stages - stage micro-batches. Forwards and backwards are taken in the
// order of the micro-batches, as by one stage alone. The sends and receives of neighbours are in one order, so that
// none waits for ever.
std::vector<StageStep> one_forward_one_backward(int stage, int stages, int64_t micro_batches);

// Returns the steps of one stage for forwards alone, one after the other.
std::vector<StageStep> forwards(int stage, int stages, int64_t micro_batches);

// RankRuns is a rank of a pipeline whose ranks have several runs of blocks each: run r of a rank comes behind run r of
// the rank before, and that of rank 0 behind run r - 1 of the last rank.
struct RankRuns {
  int rank = 0;
  int ranks = 1;
  int runs = 1;
};

// Returns the steps of one rank by the interleaved schedule of the same paper (section 2.2). A rank takes as many
// micro-batches as there are ranks through its first run, then these through the next one, and so on; backwards go
// through its runs from the last one to the first. It runs ahead by 2 (ranks - rank - 1) + (runs - 1) ranks forwards.
// So a rank waits at the ends of an update for stages that are `runs` times as short. Where the last micro-batches are
// fewer than the ranks, the steps of the missing ones are left out. Through each run the micro-batches go in their
// order, forward and backward.
// Transfers are put where ranks that wait for each other would have them if a backward took two forwards' time: a rank
// that is free takes what others have for it, also ahead of the step that reads it. All ranks' steps are parts of one
// sequence in which each transfer is at both of its ends at once, so that none waits for ever.
std::vector<StageStep> interleaved(const RankRuns& of, int64_t micro_batches);
// Returns the steps for forwards alone, in the same order.
std::vector<StageStep> interleaved_forwards(const RankRuns& of, int64_t micro_batches);

// Return the steps of a rank that trains, or that takes micro-batches forward alone, with one run or several.
inline std::vector<StageStep> training_steps(const RankRuns& of, int64_t micro_batches) {
  return of.runs > 1 ? interleaved(of, micro_batches) : one_forward_one_backward(of.rank, of.ranks, micro_batches);
}
inline std::vector<StageStep> forward_steps(const RankRuns& of, int64_t micro_batches) {
  return of.runs > 1 ? interleaved_forwards(of, micro_batches) : forwards(of.rank, of.ranks, micro_batches);
}

// MostKept is how many forwards wait for their backward at most, and how many received streams and gradients at most
// for the pass that reads them.
struct MostKept {
  int64_t forwards = 0;
  int64_t received = 0;
};
MostKept most_kept(const std::vector<StageStep>& steps);

}  // namespace collimate::train
