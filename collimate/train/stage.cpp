#include "collimate/train/stage.h"

#include <utility>

#include "collimate/base/at.h"
#include "collimate/tensor/results.h"

namespace collimate::train {

using at::Tensor;

void Stage::run(const std::vector<StageStep>& steps, const Forwarded& forwarded, const Backward& backward) {
  under_way_.resize(parts_.size() * static_cast<size_t>(stages().place.runs));
  const auto place_of = [&](const StageStep& step) {
    return static_cast<size_t>(step.run) * parts_.size() + static_cast<size_t>(step.micro_batch);
  };
  std::vector<size_t> last(under_way_.size());  // number of the last step of each micro-batch in each run
  for (size_t s = 0; s < steps.size(); ++s) last[place_of(steps[s])] = s;
  for (size_t s = 0; s < steps.size(); ++s) {
    const size_t place = place_of(steps[s]);
    UnderWay& one = base::at(under_way_, place);
    if (one.micro == nullptr)
      one.micro =
          std::make_unique<MicroStep>(model_, options_, context_, base::at(parts_, steps[s].micro_batch), noise_);
    act(steps[s], one, forwarded, backward);
    if (last[place] == s) one = {};
  }
}

void Stage::act(const StageStep& step, UnderWay& one, const Forwarded& forwarded, const Backward& backward) {
  const auto number = static_cast<size_t>(step.micro_batch);
  switch (step.act) {
    case StageAct::kReceive:
      one.passed = received(*one.micro, -1);
      break;
    case StageAct::kForward:
      one.micro->forward(std::exchange(one.passed, {}), step.run);
      forwarded(number, *one.micro);
      break;
    case StageAct::kSend:
      send(one.micro->stream(), 1);
      break;
    case StageAct::kReceiveGradient:
      if (model_.takes_gradient(step.run)) one.passed = received(*one.micro, 1);
      break;
    case StageAct::kBackward:
      one.passed = backward(number, *one.micro, one.passed);
      break;
    case StageAct::kSendGradient:
      if (model_.gives_gradient(step.run)) send(one.passed, -1);
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
