#include "collimate/train/optimizer.h"

#include <algorithm>
#include <span>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::train {
namespace {

std::string name_of(const char* moment, size_t segment) { return fmt::format("adamw.{}.{}", moment, segment); }

}  // namespace

AdamW::AdamW(model::Weights& weights, std::vector<model::Share> shares, AdamOptions options, tensor::Exec exec)
    : weights_(weights), options_(options), exec_(exec) {
  COLLIMATE_CHECK(weights.options().trained, "an optimizer needs trained weights");
  const tensor::MemoryScope tagged(weights.options().tag + "/optimizer");
  for (const model::Share& share : shares) {
    Moments& moments = moments_.emplace_back();
    moments.share = share;
    for (tensor::Buffer* moment : {&moments.first, &moments.second}) {
      *moment = tensor::Buffer(share.count() * static_cast<int64_t>(sizeof(float)), *exec.device);
      tensor::zero(exec, share.count(), moment->floats());
    }
  }
}

void AdamW::step(double learning_rate, double gradient_scale, std::span<const float* const> gradients) {
  ++steps_;
  tensor::AdamwOptions adam{.learning_rate = static_cast<float>(learning_rate),
                            .beta1 = static_cast<float>(options_.beta1),
                            .beta2 = static_cast<float>(options_.beta2),
                            .eps = static_cast<float>(options_.epsilon),
                            .step = steps_,
                            .grad_scale = static_cast<float>(gradient_scale)};
  const auto& params = weights_.params();
  for (size_t i = 0; i < params.size(); ++i) {
    if (!weights_.trains(static_cast<int>(i))) continue;
    base::fault_point("optimizer.parameter");
    adam.weight_decay = params[i].decay ? static_cast<float>(options_.weight_decay) : 0.F;
    step(params[i], weights_.param(static_cast<int>(i)), base::at(gradients, params[i].segment),
         base::at(moments_, params[i].segment), adam);
  }
}

void AdamW::step(const shape::ParamSpec& spec, float* values, const float* gradients, Moments& moments,
                 const tensor::AdamwOptions& adam) const {
  const int64_t begin = std::max(spec.offset, moments.share.begin),
                end = std::min(spec.offset + spec.count(), moments.share.end);
  if (begin >= end) return;  // another rank's
  const int64_t of_param = begin - spec.offset, of_share = begin - moments.share.begin;
  tensor::adamw(exec_, values + of_param, gradients + of_share, moments.first.floats() + of_share,
                moments.second.floats() + of_share, end - begin, adam);
}

int64_t AdamW::bytes() const {
  int64_t bytes = 0;
  for (const Moments& moments : moments_) bytes += moments.first.bytes() + moments.second.bytes();
  return bytes;
}

template <class T>
tensor::HostView<T> AdamW::seen(const tensor::Buffer& moment) const {
  return {exec_, moment.floats(), moment.bytes() / static_cast<int64_t>(sizeof(float))};
}

void AdamW::save(base::StateWriter& out) const {
  out.json("adamw", {{"steps", steps_}, {"segments", moments_.size()}});
  for (size_t s = 0; s < moments_.size(); ++s) {
    if (moments_[s].share.count() == 0) continue;
    out.bytes(name_of("first", s), std::as_bytes(seen<const float>(moments_[s].first).span()));
    out.bytes(name_of("second", s), std::as_bytes(seen<const float>(moments_[s].second).span()));
  }
}

void AdamW::load(base::StateReader& in) {
  const nlohmann::json header = in.json("adamw");
  if (header.at("segments") != moments_.size())
    throw base::RunError(base::expectation("checkpoint", fmt::format("optimizer state of {} segments", moments_.size()),
                                           header.at("segments").dump()));
  steps_ = header.at("steps");
  for (size_t s = 0; s < moments_.size(); ++s) {
    if (moments_[s].share.count() == 0) continue;
    in.bytes(name_of("first", s), std::as_writable_bytes(seen<float>(moments_[s].first).span()));
    in.bytes(name_of("second", s), std::as_writable_bytes(seen<float>(moments_[s].second).span()));
  }
}

}  // namespace collimate::train
