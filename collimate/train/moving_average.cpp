#include "collimate/train/moving_average.h"

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/segment_parts.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/ops/optimizer.h"

namespace collimate::train {
namespace {

constexpr const char* kAverage = "average";

}  // namespace

MovingAverage::MovingAverage(model::Weights& weights, double decay, tensor::Exec exec)
    : weights_(weights), step_(static_cast<float>(1 - decay)), exec_(exec) {
  COLLIMATE_CHECK(decay >= 0 && decay < 1, "a decay of {}", decay);
  const tensor::MemoryScope tagged(weights.options().tag + "/average");
  averages_.resize(static_cast<size_t>(weights.segments()));
  away_.resize(averages_.size());
  for (int s = 0; s < weights.segments(); ++s) {
    const std::span<float> master = weights.kept_values(s);
    if (!weights.trains_segment(s) || master.empty()) continue;
    tensor::Buffer& average = base::at(averages_, s);
    average = tensor::Buffer(static_cast<int64_t>(master.size_bytes()), *exec.device);
    tensor::copy(exec, master.data(), static_cast<int64_t>(master.size()), average.floats());
  }
}

tensor::HostEdit MovingAverage::values(int segment) const {
  const tensor::Buffer& average = base::at(averages_, segment);
  return {exec_, average.floats(), average.bytes() / static_cast<int64_t>(sizeof(float))};
}

void MovingAverage::update() {
  for (int s = 0; s < weights_.segments(); ++s) {
    const tensor::Buffer& average = base::at(averages_, s);
    if (average.bytes() == 0) continue;
    const std::span<float> master = weights_.kept_values(s);
    tensor::move_towards(exec_, step_, master.data(), std::ssize(master), average.floats());
  }
}

// An average changes with every update, so that what the file has of it is always old.
void MovingAverage::offload(tensor::AwayFile& file) {
  for (size_t s = 0; s < averages_.size(); ++s) {
    away_[s].current = false;
    file.put(exec_, away_[s], averages_[s]);
  }
}

void MovingAverage::restore(tensor::AwayFile& file) {
  const tensor::MemoryScope tagged(weights_.options().tag + "/average");
  for (size_t s = 0; s < averages_.size(); ++s) file.bring(exec_, away_[s], averages_[s]);
}

void MovingAverage::swap() {
  for (int s = 0; s < weights_.segments(); ++s) {
    const tensor::Buffer& average = base::at(averages_, s);
    if (average.bytes() == 0) continue;
    const std::span<float> master = weights_.kept_values(s);
    tensor::exchange(exec_, std::ssize(master), average.floats(), master.data());
  }
}

void MovingAverage::save(base::StateWriter& out, std::span<const model::Share> shares) const {
  for (const int s : weights_.changing_segments()) {
    const tensor::HostEdit average = values(s);
    const model::Share share = base::at(shares, s);
    if (share.count() == 0 || average.empty()) continue;
    const auto first = static_cast<size_t>(share.begin - weights_.kept(s).begin);
    out.tensors(kAverage, s, model::parts_of(weights_.params(), s, share),
                average.span().subspan(first, static_cast<size_t>(share.count())));
  }
}

void MovingAverage::load(base::StateReader& in) {
  for (const int s : weights_.changing_segments()) {
    const tensor::HostEdit average = values(s);
    if (average.empty()) continue;
    in.tensors(kAverage, model::parts_of(weights_.params(), s, weights_.kept(s)), average.span());
  }
}

}  // namespace collimate::train
