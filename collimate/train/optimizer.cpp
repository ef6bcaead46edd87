#include "collimate/train/optimizer.h"

#include <ATen/ops/zeros.h>

#include <span>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/ops/optimizer.h"

namespace collimate::train {
namespace {

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}
std::span<std::byte> bytes_of(at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

AdamW::AdamW(model::Weights& weights, AdamOptions options, tensor::Exec exec)
    : weights_(weights), options_(options), exec_(exec) {
  COLLIMATE_CHECK(weights.options().trained, "an optimizer needs trained weights");
  const tensor::MemoryScope tagged(weights.options().tag + "/optimizer");
  for (int s = 0; s < weights.segments(); ++s) {
    const auto floats = static_cast<int64_t>(weights.gradient(s).size());
    first_.push_back(at::zeros({floats}, at::kFloat));
    second_.push_back(at::zeros({floats}, at::kFloat));
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
    float* first = first_[spec.segment].data_ptr<float>() + spec.offset;
    float* second = second_[spec.segment].data_ptr<float>() + spec.offset;
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
  for (size_t s = 0; s < first_.size(); ++s) bytes += static_cast<int64_t>(first_[s].nbytes() + second_[s].nbytes());
  return bytes;
}

void AdamW::save(base::StateWriter& out) const {
  out.json("adamw", {{"steps", steps_}, {"segments", first_.size()}});
  for (size_t s = 0; s < first_.size(); ++s) {
    if (first_[s].numel() == 0) continue;
    out.bytes(fmt::format("adamw.first.{}", s), bytes_of(first_[s]));
    out.bytes(fmt::format("adamw.second.{}", s), bytes_of(second_[s]));
  }
}

void AdamW::load(base::StateReader& in) {
  const nlohmann::json header = in.json("adamw");
  if (header.at("segments") != first_.size())
    throw base::RunError(base::expectation("checkpoint", fmt::format("optimizer state of {} segments", first_.size()),
                                           header.at("segments").dump()));
  steps_ = header.at("steps");
  for (size_t s = 0; s < first_.size(); ++s) {
    if (first_[s].numel() == 0) continue;
    in.bytes(fmt::format("adamw.first.{}", s), bytes_of(first_[s]));
    in.bytes(fmt::format("adamw.second.{}", s), bytes_of(second_[s]));
  }
}

}  // namespace collimate::train
