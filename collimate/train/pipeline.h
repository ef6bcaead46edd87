#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace collimate::train {

// A stage of a pipeline does these with a micro-batch. Transfers are between neighbouring stages and meet: a send
// returns when it is received.
enum class StageAct {
  kReceive,  // the stream of the stage before
  kForward,
  kSend,             // the stream, to the stage behind
  kReceiveGradient,  // of that, from the stage behind
  kBackward,
  kSendGradient  // of what was received
};

struct StageStep {
  StageAct act = StageAct::kForward;
  int64_t micro_batch = 0;
  bool operator==(const StageStep&) const = default;
};

// One forward, one backward (Narayanan et al. 2021, arXiv 2104.04473, without interleaving): a stage runs ahead by as
// many micro-batches as there are stages behind it, then takes forwards and backwards in turn, so that it keeps at most
// stages - stage micro-batches. Both are taken in the order of the micro-batches, as by one stage alone. The sends and
// receives of neighbours are in one order, so that none waits for ever.
std::vector<StageStep> one_forward_one_backward(int stage, int stages, int64_t micro_batches);

// Forwards alone, one after the other.
std::vector<StageStep> forwards(int stage, int stages, int64_t micro_batches);

}  // namespace collimate::train
