#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/rope.h"

namespace collimate::model {

// Returns the inverse frequency of each pair of channels [turned / 2] of a head with the shape's scaling: linear
// divides all of them, llama3 (Llama 3.1) only the slow ones, yarn blends between, longrope divides each by a factor of
// its own, dynamic (NTK-aware, bloc97 and emozilla 2023) stretches the base for sequences beyond max_positions. They
// are computed in fp32, in the order of the Hugging Face models. `longest` is that of longest_positions.
std::vector<float> rope_inverse_frequencies(const shape::ModelShape& shape, int64_t longest = 0);
// Returns the factor of all cosines and sines: 1 except for yarn and longrope.
float rope_magnitude(const shape::ModelShape& shape);
// Returns how many positions a sequence may have if none is longer than `longest` tokens (0: not known). That is
// positions() except for ropes that change for longer sequences. LongRoPE has factors for sequences up to the model's
// original length, and others for longer ones: if none is longer, the former are used, and the original length is the
// limit. A dynamic rope is made for the longest sequence: the limit is `longest`, but at least max_positions.
int64_t longest_positions(const shape::ModelShape& shape, int64_t longest);
// Returns inverse frequencies without scaling, for the blocks that have a rope base of their own; empty if none has.
std::vector<float> own_inverse_frequencies(const shape::ModelShape& shape);

// Holds cos and sin by position and grows on demand. A row depends on its position alone.
class RopeCache {
 public:
  // `magnitude` multiplies all cosines and sines.
  RopeCache(std::vector<float> inverse_frequencies, const tensor::Exec& exec, float magnitude = 1);
  // Returns a table that covers positions [0, count). Forwards that wait for a backward may still read earlier tables.
  const tensor::RopeTable& cover(int64_t count);

 private:
  tensor::Exec exec_;
  struct Grown {
    std::vector<float> cos, sin;
    tensor::OnDevice<float> device_cos, device_sin;
  };
  std::vector<float> inverse_frequencies_;
  float magnitude_;
  std::vector<std::unique_ptr<Grown>> grown_;  // each twice as long as the one before
  tensor::RopeTable table_;
};

}  // namespace collimate::model
