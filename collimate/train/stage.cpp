#include "collimate/train/stage.h"

#include <utility>

#include "collimate/base/at.h"
#include "collimate/tensor/results.h"

namespace collimate::train {

using at::Tensor;

void Stage::run(const std::vector<StageStep>& steps, const Forwarded& forwarded, const Backward& backward) {
  under_way_.resize(parts_.size());
  std::vector<size_t> last(parts_.size());  // number of the last step of each micro-batch
  for (size_t s = 0; s < steps.size(); ++s) base::at(last, steps[s].micro_batch) = s;
  for (size_t s = 0; s < steps.size(); ++s) {
    const auto number = static_cast<size_t>(steps[s].micro_batch);
    UnderWay& one = under_way_[number];
    if (one.micro == nullptr)
      one.micro = std::make_unique<MicroStep>(model_, options_, context_, parts_[number], noise_);
    act(steps[s], one, forwarded, backward);
    if (last[number] == s) one = {};
  }
}

void Stage::act(const StageStep& step, UnderWay& one, const Forwarded& forwarded, const Backward& backward) {
  const auto number = static_cast<size_t>(step.micro_batch);
  switch (step.act) {
    case StageAct::kReceive:
      one.passed = received(*one.micro, -1);
      break;
    case StageAct::kForward:
      one.micro->forward(std::exchange(one.passed, {}));
      forwarded(number, *one.micro);
      break;
    case StageAct::kSend:
      send(one.micro->stream(), 1);
      break;
    case StageAct::kReceiveGradient:
      if (model_.takes_gradient()) one.passed = received(*one.micro, 1);
      break;
    case StageAct::kBackward:
      one.passed = backward(number, *one.micro, one.passed);
      break;
    case StageAct::kSendGradient:
      if (model_.gives_gradient()) send(one.passed, -1);
      break;
  }
}

Tensor Stage::received(const MicroStep& micro, int behind) const {
  Tensor stream = tensor::empty_result(model_.exec(), {micro.own_tokens(), model_.stream_width()});
  stages().receive(model_.exec(), tensor::device_data(stream), stream.numel(), behind);
  return stream;
}

void Stage::send(const Tensor& stream, int behind) const {
  stages().send(model_.exec(), tensor::device_data(stream), stream.numel(), behind);
}

}  // namespace collimate::train
