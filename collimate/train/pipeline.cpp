#include "collimate/train/pipeline.h"

#include <algorithm>

namespace collimate::train {
namespace {

// Collects the steps of one stage; it leaves out transfers with stages that do not exist.
struct Steps {
  bool is_first, is_last;
  std::vector<StageStep> all;

  void forward(int64_t m) {
    if (!is_first) all.push_back({StageAct::kReceive, m});
    all.push_back({StageAct::kForward, m});
  }
  void send(int64_t m) {
    if (!is_last) all.push_back({StageAct::kSend, m});
  }
  void receive_gradient(int64_t m) {
    if (!is_last) all.push_back({StageAct::kReceiveGradient, m});
  }
  void backward(int64_t m) {
    all.push_back({StageAct::kBackward, m});
    if (!is_first) all.push_back({StageAct::kSendGradient, m});
  }
};

}  // namespace

std::vector<StageStep> one_forward_one_backward(int stage, int stages, int64_t micro_batches) {
  Steps steps{stage == 0, stage + 1 == stages, {}};
  const int64_t ahead = std::min<int64_t>(stages - 1 - stage, micro_batches);
  for (int64_t m = 0; m < ahead; ++m) {
    steps.forward(m);
    steps.send(m);
  }
  for (int64_t m = 0; m < micro_batches; ++m) {
    const int64_t next = m + ahead;
    if (next < micro_batches) steps.forward(next);
    // The stage behind sends its gradient before it receives the next stream.
    steps.receive_gradient(m);
    if (next < micro_batches) steps.send(next);
    steps.backward(m);
  }
  return std::move(steps.all);
}

std::vector<StageStep> forwards(int stage, int stages, int64_t micro_batches) {
  Steps steps{stage == 0, stage + 1 == stages, {}};
  for (int64_t m = 0; m < micro_batches; ++m) {
    steps.forward(m);
    steps.send(m);
  }
  return std::move(steps.all);
}

}  // namespace collimate::train
