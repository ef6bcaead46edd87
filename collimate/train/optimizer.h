#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/base/stateful.h"
#include "collimate/model/share.h"
#include "collimate/model/weights.h"
#include "collimate/tensor/away_file.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/optimizer.h"

namespace collimate::train {

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double b_rate_ratio = 1.0;  // learning rate of adapters' B over that of all else (LoRA+: Hayou et al. 2024)
  double weight_decay = 0.0;  // decoupled; none on biases and norm weights, some on embeddings (Hugging Face's rule)
};

// AdamW (Loshchilov & Hutter 2019) on the fp32 masters of a trained Weights, by torch.optim.AdamW's formula and order
// of operations. Owns the two moments of what it updates and nothing else.
class AdamW {
 public:
  // `shares` [segments]: what it updates of each one.
  AdamW(model::Weights& weights, std::vector<model::Share> shares, AdamOptions options, tensor::Exec exec);

  // One step with `gradients` of the shares, by segment, which are scaled by `gradient_scale`. Weights::commit() is
  // left to who knows that all are changed.
  void step(double learning_rate, double gradient_scale, std::span<const float* const> gradients);
  int64_t steps() const { return steps_; }
  int64_t bytes() const;

  // The moments leave the device for the file, and come back with the same bits.
  void offload(tensor::AwayFile& file);
  void restore(tensor::AwayFile& file);

  // Saves the moments of these shares [segments], which are among those that it updates; loads all that it updates.
  void save(base::StateWriter& out, std::span<const model::Share> shares) const;
  void load(base::StateReader& in);

 private:
  void changed();  // what the file has of them is old
  template <class T>
  tensor::HostView<T> seen(const tensor::Buffer& moment) const;

  // The moments of a segment's share, and what they are of.
  struct Moments {
    model::Share share;
    tensor::Buffer first, second;  // [share.count()]
    tensor::AwayFile::Slot first_away, second_away;
  };
  // Updates what this one has of a parameter.
  void step(const shape::ParamSpec& spec, const float* gradients, Moments& moments,
            const tensor::AdamwOptions& adam) const;

  model::Weights& weights_;
  AdamOptions options_;
  tensor::Exec exec_;
  int64_t steps_ = 0;
  std::vector<Moments> moments_;  // by segment
};

}  // namespace collimate::train
