#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/experts.h"

namespace collimate::model {

// Notes what training asks of a mixture's routers: their load in a forward, and the loss of that load in its backward.
// The object must not move while a tape reads it.
class RouterNotes {
 public:
  // `counts` [T] are those of TokenBatch.
  RouterNotes(const tensor::Exec& exec, const shape::ModelShape& shape, std::vector<float> counts);
  RouterNotes(const RouterNotes&) = delete;
  RouterNotes& operator=(const RouterNotes&) = delete;

  // Adds a router's load while the forward runs. A router that the backward recomputes is not counted again.
  void measure(const tensor::Exec& exec, const shape::Experts& how, const tensor::Routed& routed, int router);
  void end_forward() { measuring_ = false; }
  std::vector<float> load() const;  // [routers, entries] as in tensor::measure_routes
  // Sets the loss, by its slopes in the sums of scores [E] and in the sum of squares (Model::set_router_loss).
  void set_loss(std::span<const float> scores, float squares);
  const tensor::LoadSlopes& loss() const { return loss_; }

 private:
  float* loads() const { return static_cast<float*>(memory_.data()) + experts_; }

  tensor::Exec exec_;
  int64_t experts_ = 0, entries_ = 0, routers_ = 0;  // entries of a router's load
  bool measuring_ = true;
  std::vector<float> counts_;
  tensor::OnDevice<float> counts_on_device_;
  tensor::Buffer memory_;  // slopes of scores [E], loads
  tensor::LoadSlopes loss_;
};

}  // namespace collimate::model
