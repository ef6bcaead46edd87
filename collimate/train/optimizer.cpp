#include "collimate/train/optimizer.h"

#include <span>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/ops/optimizer.h"

namespace collimate::train {
namespace {

std::string name_of(const char* moment, size_t segment) { return fmt::format("adamw.{}.{}", moment, segment); }

}  // namespace

AdamW::AdamW(model::Weights& weights, AdamOptions options, tensor::Exec exec)
    : weights_(weights), options_(options), exec_(exec) {
  COLLIMATE_CHECK(weights.options().trained, "an optimizer needs trained weights");
  const tensor::MemoryScope tagged(weights.options().tag + "/optimizer");
  for (int s = 0; s < weights.segments(); ++s) {
    const auto floats = static_cast<int64_t>(weights.segment_gradient(s).size());
    for (auto* moment : {&first_, &second_}) {
      moment->emplace_back(floats * static_cast<int64_t>(sizeof(float)), *exec.device);
      tensor::zero(exec, floats, moment->back().floats());
    }
  }
}

void AdamW::step(double learning_rate, double gradient_scale) {
  ++steps_;
  const auto& params = weights_.params();
  for (size_t i = 0; i < params.size(); ++i) {
    const shape::ParamSpec& spec = params[i];
    float* gradient = weights_.param_gradient(static_cast<int>(i));
    if (gradient == nullptr) continue;  // frozen
    base::fault_point("optimizer.parameter");
    float* first = first_[spec.segment].floats() + spec.offset;
    float* second = second_[spec.segment].floats() + spec.offset;
    const tensor::AdamwOptions adam{.learning_rate = static_cast<float>(learning_rate),
                                    .beta1 = static_cast<float>(options_.beta1),
                                    .beta2 = static_cast<float>(options_.beta2),
                                    .eps = static_cast<float>(options_.epsilon),
                                    .weight_decay = spec.decay ? static_cast<float>(options_.weight_decay) : 0.F,
                                    .step = steps_,
                                    .grad_scale = static_cast<float>(gradient_scale)};
    tensor::adamw(exec_, weights_.param(static_cast<int>(i)), gradient, first, second, spec.count(), adam);
  }
  weights_.commit();
}

int64_t AdamW::bytes() const {
  int64_t bytes = 0;
  for (size_t s = 0; s < first_.size(); ++s) bytes += first_[s].bytes() + second_[s].bytes();
  return bytes;
}

template <class T>
tensor::HostView<T> AdamW::seen(const tensor::Buffer& moment) const {
  return {exec_, moment.floats(), moment.bytes() / static_cast<int64_t>(sizeof(float))};
}

void AdamW::save(base::StateWriter& out) const {
  out.json("adamw", {{"steps", steps_}, {"segments", first_.size()}});
  for (size_t s = 0; s < first_.size(); ++s) {
    if (first_[s].bytes() == 0) continue;
    out.bytes(name_of("first", s), std::as_bytes(seen<const float>(first_[s]).span()));
    out.bytes(name_of("second", s), std::as_bytes(seen<const float>(second_[s]).span()));
  }
}

void AdamW::load(base::StateReader& in) {
  const nlohmann::json header = in.json("adamw");
  if (header.at("segments") != first_.size())
    throw base::RunError(base::expectation("checkpoint", fmt::format("optimizer state of {} segments", first_.size()),
                                           header.at("segments").dump()));
  steps_ = header.at("steps");
  for (size_t s = 0; s < first_.size(); ++s) {
    if (first_[s].bytes() == 0) continue;
    in.bytes(name_of("first", s), std::as_writable_bytes(seen<float>(first_[s]).span()));
    in.bytes(name_of("second", s), std::as_writable_bytes(seen<float>(second_[s]).span()));
  }
}

}  // namespace collimate::train
