#include "collimate/train/optimizer.h"

#include <algorithm>
#include <span>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/model/lora.h"
#include "collimate/model/segment_parts.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::train {
namespace {

constexpr const char* kFirst = "adamw.first";
constexpr const char* kSecond = "adamw.second";

}  // namespace

AdamW::AdamW(model::Weights& weights, std::vector<model::Share> shares, AdamOptions options, tensor::Exec exec,
             std::shared_ptr<tensor::AwayFile> away)
    : weights_(weights), options_(options), exec_(exec), away_(std::move(away)) {
  COLLIMATE_CHECK(weights.options().trained, "an optimizer needs trained weights");
  const tensor::MemoryScope tagged(weights.options().tag + "/optimizer");
  for (const model::Share& share : shares) {
    Moments& moments = moments_.emplace_back();
    moments.share = share;
    for (tensor::Buffer* moment : {&moments.first, &moments.second}) {
      *moment = tensor::Buffer(share.count() * static_cast<int64_t>(sizeof(float)), *exec.device);
      tensor::zero(exec, share.count(), moment->floats());
    }
    if (away_ != nullptr) put(*away_, moments);  // before the next segment's moments are made
  }
}

void AdamW::put(tensor::AwayFile& file, Moments& moments) const {
  file.put(exec_, moments.first_away, moments.first);
  file.put(exec_, moments.second_away, moments.second);
}

void AdamW::bring(tensor::AwayFile& file, Moments& moments) const {
  const tensor::MemoryScope tagged(weights_.options().tag + "/optimizer");
  file.bring(exec_, moments.first_away, moments.first);
  file.bring(exec_, moments.second_away, moments.second);
}

void AdamW::with_moments(size_t segment, bool changes, const std::function<void(Moments&)>& use) const {
  Moments& moments = base::at(moments_, segment);
  if (away_ != nullptr) {
    bring(*away_, moments);
    if (segment + 1 < moments_.size())
      for (const auto* next : {&moments_[segment + 1].first_away, &moments_[segment + 1].second_away})
        away_->expect(*next);
  }
  if (changes) moments.first_away.current = moments.second_away.current = false;
  use(moments);
  if (away_ != nullptr) put(*away_, moments);
}

void AdamW::step(double learning_rate, double gradient_scale, std::span<const float* const> gradients) {
  ++steps_;
  tensor::AdamwOptions adam{.beta1 = static_cast<float>(options_.beta1),
                            .beta2 = static_cast<float>(options_.beta2),
                            .eps = static_cast<float>(options_.epsilon),
                            .step = steps_,
                            .grad_scale = static_cast<float>(gradient_scale)};
  const auto& params = weights_.params();
  for (size_t s = 0; s < moments_.size(); ++s)
    with_moments(s, /*changes=*/true, [&](Moments& moments) {
      for (size_t i = 0; i < params.size(); ++i) {
        if (params[i].segment != static_cast<int>(s) || !weights_.trains(static_cast<int>(i))) continue;
        base::fault_point("optimizer.parameter");
        const double ratio = model::is_adapter_b(params[i]) ? options_.b_rate_ratio : 1.0;
        adam.learning_rate = static_cast<float>(learning_rate * ratio);
        adam.weight_decay = params[i].decay ? static_cast<float>(options_.weight_decay) : 0.F;
        step(params[i], base::at(gradients, s), moments, adam);
      }
    });
}

void AdamW::step(const shape::ParamSpec& spec, const float* gradients, Moments& moments,
                 const tensor::AdamwOptions& adam) const {
  const int64_t begin = std::max(spec.offset, moments.share.begin),
                end = std::min(spec.offset + spec.count(), moments.share.end);
  if (begin >= end) return;  // other ranks update the parameter
  const int64_t of_share = begin - moments.share.begin;
  float* values = weights_.kept_values(spec.segment).data() + (begin - weights_.kept(spec.segment).begin);
  tensor::adamw(exec_, values, gradients + of_share, moments.first.floats() + of_share,
                moments.second.floats() + of_share, end - begin, adam);
}

void AdamW::offload(tensor::AwayFile& file) {
  if (away_ != nullptr) return;
  for (Moments& moments : moments_) put(file, moments);
}

void AdamW::restore(tensor::AwayFile& file) {
  if (away_ != nullptr) return;
  for (Moments& moments : moments_) bring(file, moments);
}

template <class T>
tensor::HostView<T> AdamW::seen(const tensor::Buffer& moment) const {
  return {exec_, moment.floats(), moment.bytes() / static_cast<int64_t>(sizeof(float))};
}

void AdamW::save(base::StateWriter& out, std::span<const model::Share> shares) const {
  out.json("adamw", {{"steps", steps_}});
  for (size_t s = 0; s < moments_.size(); ++s) {
    const model::Share share = base::at(shares, s), own = moments_[s].share;
    if (share.count() == 0 || own.count() == 0) continue;
    const auto parts = model::parts_of(weights_.params(), static_cast<int>(s), share);
    const auto begin = static_cast<size_t>(share.begin - own.begin), count = static_cast<size_t>(share.count());
    with_moments(s, /*changes=*/false, [&](const Moments& moments) {
      out.tensors(kFirst, static_cast<int>(s), parts, seen<const float>(moments.first).span().subspan(begin, count));
      out.tensors(kSecond, static_cast<int>(s), parts, seen<const float>(moments.second).span().subspan(begin, count));
    });
  }
}

void AdamW::load(base::StateReader& in) {
  steps_ = in.json("adamw").at("steps");
  for (size_t s = 0; s < moments_.size(); ++s) {
    const auto parts = model::parts_of(weights_.params(), static_cast<int>(s), moments_[s].share);
    with_moments(s, /*changes=*/true, [&](const Moments& moments) {
      if (parts.empty()) return;
      in.tensors(kFirst, parts, seen<float>(moments.first).span());
      in.tensors(kSecond, parts, seen<float>(moments.second).span());
    });
  }
}

}  // namespace collimate::train
