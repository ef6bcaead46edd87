#include "collimate/train/stage.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/tensor/results.h"

namespace collimate::train {

using at::Tensor;

void Stage::run(const std::vector<StageStep>& steps, const Forwarded& forwarded, const Backward& backward,
                const SegmentDone& idle_done) {
  size_t count = parts_.size();
  for (const StageStep& step : steps) count = std::max(count, static_cast<size_t>(step.micro_batch) + 1);
  under_way_.resize(count);
  std::vector<size_t> last(count);  // step of each micro-batch
  for (size_t s = 0; s < steps.size(); ++s) base::at(last, steps[s].micro_batch) = s;
  for (size_t s = 0; s < steps.size(); ++s) {
    const auto number = static_cast<size_t>(steps[s].micro_batch);
    UnderWay& one = under_way_[number];
    if (number >= parts_.size()) {
      idle(steps[s].act, one, idle_done);
    } else {
      if (one.micro == nullptr) one.micro = std::make_unique<MicroStep>(model_, options_, context_, parts_[number]);
      act(steps[s], one, forwarded, backward);
    }
    if (last[number] == s) one = {};
  }
}

void Stage::idle(StageAct act, UnderWay& one, const SegmentDone& done) {
  if (act == StageAct::kForward) one.idle = model_.idle_forward_train();
  if (act == StageAct::kBackward) model_.idle_backward(std::move(one.idle), done);
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
