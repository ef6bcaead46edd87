#pragma once

#include <cstdint>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/rope.h"

namespace collimate::model {

// Inverse frequency of each pair of channels [turned / 2] of a head with the shape's scaling: linear divides all of
// them, llama3 (Llama 3.1) only the slow ones, dynamic none up to max_positions, beyond which no model here goes. In
// fp32, in the order in which the Hugging Face models compute them.
std::vector<float> rope_inverse_frequencies(const shape::ModelShape& shape);

// cos and sin by position, grown on demand. A row depends on its position alone.
class RopeCache {
 public:
  RopeCache(const shape::ModelShape& shape, const tensor::Exec& exec);
  // A table that covers positions [0, count). Valid until the next call.
  const tensor::RopeTable& cover(int64_t count);

 private:
  tensor::Exec exec_;
  std::vector<float> inverse_frequencies_, cos_, sin_;
  tensor::OnDevice<float> device_cos_, device_sin_;
  tensor::RopeTable table_;
};

}  // namespace collimate::model
