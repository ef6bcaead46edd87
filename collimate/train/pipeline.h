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

}  // namespace collimate::train
