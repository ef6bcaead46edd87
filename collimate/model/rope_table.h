#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/rope.h"

namespace collimate::model {

// Inverse frequency of each pair of channels [turned / 2] of a head with the shape's scaling: linear divides all of
// them, llama3 (Llama 3.1) only the slow ones, yarn blends between, longrope divides each by a factor of its own,
// dynamic (NTK-aware, bloc97 and emozilla 2023) stretches the base for sequences beyond max_positions. In fp32, in the
// order in which the Hugging Face models compute them. `longest`: as of longest_positions.
std::vector<float> rope_inverse_frequencies(const shape::ModelShape& shape, int64_t longest = 0);
// Cosines and sines are multiplied by this: 1 but for yarn and longrope.
float rope_magnitude(const shape::ModelShape& shape);
// A sequence of a model that is told none longer than `longest` tokens will come (0: none is said) has at most so many.
// That is positions() but for ropes that are other for longer sequences. LongRoPE has factors for sequences up to the
// model's original length, and others for longer ones: if none longer comes, the former are used, and the original
// length is the limit. A dynamic one is made for the longest sequence, which then is the limit, or max_positions.
int64_t longest_positions(const shape::ModelShape& shape, int64_t longest);
// Gives them without scaling, by the base of the blocks that have one of their own; empty where none has.
std::vector<float> own_inverse_frequencies(const shape::ModelShape& shape);

// cos and sin by position, grown on demand. A row depends on its position alone.
class RopeCache {
 public:
  // `magnitude` multiplies all of them.
  RopeCache(std::vector<float> inverse_frequencies, const tensor::Exec& exec, float magnitude = 1);
  // A table that covers positions [0, count). Forwards that wait for their backward may go on reading earlier ones.
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
