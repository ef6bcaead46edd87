#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
  double weight_decay = 0.0;  // decoupled; not for biases and norm weights, but for embeddings (Hugging Face's rule)
};

// Runs AdamW (Loshchilov & Hutter 2019) on the fp32 masters of a trained Weights, by torch.optim.AdamW's formula and
// order of operations. It owns the two moments of what it updates and nothing else.
class AdamW {
 public:
  // `shares` [segments] are what it updates of each segment. If there is `away`, the moments stay in that file except
  // while they are updated, saved or loaded: those of one segment at a time are on the device, while those of the next
  // are read ahead.
  AdamW(model::Weights& weights, std::vector<model::Share> shares, AdamOptions options, tensor::Exec exec,
        std::shared_ptr<tensor::AwayFile> away = nullptr);

  // Makes one step with the `gradients` of the shares, by segment, which are scaled by `gradient_scale`. Does not call
  // Weights::commit(): the caller does when all ranks' shares are changed.
  void step(double learning_rate, double gradient_scale, std::span<const float* const> gradients);
  int64_t steps() const { return steps_; }

  // offload() moves the moments from the device to the file, restore() brings them back with the same bits. Both do
  // nothing where the constructor was given `away`.
  void offload(tensor::AwayFile& file);
  void restore(tensor::AwayFile& file);

  // Saves the moments of `shares` [segments], which lie in the constructor's; loads those of all that it updates.
  void save(base::StateWriter& out, std::span<const model::Share> shares) const;
  void load(base::StateReader& in);

 private:
  template <class T>
  tensor::HostView<T> seen(const tensor::Buffer& moment) const;

  // The moments of a segment's share, and that share.
  struct Moments {
    model::Share share;
    tensor::Buffer first, second;  // [share.count()]
    tensor::AwayFile::Slot first_away, second_away;
  };
  void put(tensor::AwayFile& file, Moments& moments) const;
  void bring(tensor::AwayFile& file, Moments& moments) const;
  // Calls `use` while a segment's moments are on the device. If it `changes` them, they are written to the file again.
  void with_moments(size_t segment, bool changes, const std::function<void(Moments& moments)>& use) const;
  // Updates the part of a parameter that lies in the moments' share.
  void step(const shape::ParamSpec& spec, const float* gradients, Moments& moments,
            const tensor::AdamwOptions& adam) const;

  model::Weights& weights_;
  AdamOptions options_;
  tensor::Exec exec_;
  std::shared_ptr<tensor::AwayFile> away_;  // null: moments stay on the device
  int64_t steps_ = 0;
  mutable std::vector<Moments> moments_;  // by segment; mutable, as saving brings those that are away
};

}  // namespace collimate::train
