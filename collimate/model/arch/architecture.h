#pragma once

#include <map>
#include <memory>
#include <string>

#include "collimate/model/layers.h"

namespace collimate::model {

// One model family over one Weights: what each segment computes. A segment maps the residual stream [T, H] to the
// stream; the last one to the hidden states that the head reads. Holds indices of parameters only.
class Architecture {
 public:
  virtual ~Architecture() = default;
  virtual Slot* embedding(Step& step) const = 0;
  virtual Slot* block(Step& step, int layer, Slot* stream) const = 0;
  virtual Slot* final_norm(Step& step, Slot* stream) const = 0;
  // Whether q and k turn by their positions.
  virtual bool rotary() const = 0;
};

std::unique_ptr<Architecture> make_llama(const Weights& weights);
std::unique_ptr<Architecture> make_gpt2(const Weights& weights);

// By family: those that shape::known_families() names.
using MakeArchitecture = std::unique_ptr<Architecture> (*)(const Weights&);
const std::map<std::string, MakeArchitecture>& architectures();

// The one of weights.shape().family. InputError naming the known ones.
std::unique_ptr<Architecture> make_architecture(const Weights& weights);

}  // namespace collimate::model
