#pragma once

#include <cstdint>
#include <vector>

#include "collimate/base/stateful.h"
#include "collimate/model/weights.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/host_access.h"

namespace collimate::train {

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  // decoupled; none on biases and norm weights, some on embeddings (Hugging Face's rule)
};

// AdamW (Loshchilov & Hutter 2019) on the fp32 masters of a trained Weights, by torch.optim.AdamW's formula and order
// of operations. Owns the two moments of every segment that has a gradient and nothing else.
class AdamW : public base::Stateful {
 public:
  AdamW(model::Weights& weights, AdamOptions options, tensor::Exec exec);

  // One step with gradients scaled by `gradient_scale`, then Weights::commit().
  void step(double learning_rate, double gradient_scale);
  int64_t steps() const { return steps_; }
  int64_t bytes() const;

  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  template <class T>
  tensor::HostView<T> seen(const tensor::Buffer& moment) const;

  model::Weights& weights_;
  AdamOptions options_;
  tensor::Exec exec_;
  int64_t steps_ = 0;
  std::vector<tensor::Buffer> first_;  // [floats of the segment], empty where it is frozen
  std::vector<tensor::Buffer> second_;
};

}  // namespace collimate::train
