#include "collimate/model/router_notes.h"

#include "collimate/base/error.h"
#include "collimate/shape/mixture.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::model {

RouterNotes::RouterNotes(const tensor::Exec& exec, const shape::ModelShape& shape, std::vector<float> counts)
    : exec_(exec), counts_(std::move(counts)), counts_on_device_(exec, std::span<const float>(counts_)) {
  const shape::Experts& how = *shape::experts_of(shape);
  experts_ = how.count;
  entries_ = tensor::load_entries(how);
  routers_ = shape::routers_of(shape);
  const int64_t floats = experts_ + routers_ * entries_;
  memory_ = tensor::Buffer(floats * static_cast<int64_t>(sizeof(float)), *exec.device);
  tensor::zero(exec, floats, memory_.floats());
}

void RouterNotes::measure(const tensor::Exec& exec, const shape::Experts& how, const tensor::Routed& routed,
                          int router) {
  if (!measuring_) return;
  tensor::measure_routes(exec, how, routed, static_cast<int64_t>(counts_.size()), counts_on_device_.data(),
                         loads() + router * entries_);
}

std::vector<float> RouterNotes::load() const {
  const tensor::HostRead read(exec_, loads(), routers_ * entries_);
  return {read.begin(), read.end()};
}

void RouterNotes::set_loss(std::span<const float> scores, float squares) {
  COLLIMATE_CHECK(static_cast<int64_t>(scores.size()) == experts_, "{} experts", experts_);
  tensor::copy_in(exec_, scores.data(), static_cast<int64_t>(scores.size_bytes()), memory_.data());
  loss_ = {counts_on_device_.data(), memory_.floats(), squares};
}

}  // namespace collimate::model
