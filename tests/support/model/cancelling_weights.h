#pragma once

#include <cstdint>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/model/weights.h"
#include "tests/support/model/edit_weights.h"
#include "tests/support/tensor/ops/cancelling.h"

namespace collimate::model::testing {

// Rows [n/2, n) of each piece of a dim repeat rows [0, n/2); `width` floats a row.
inline void repeat_rows(const shape::ParamSpec& spec, float* values, int64_t width) {
  const std::vector<int64_t> whole = {spec.sizes[0]};
  const bool pieces = !spec.dims.empty() && !spec.dims[0].blocks.empty();
  for (const int64_t rows : pieces ? spec.dims[0].blocks : whole) {
    tensor::mirror(values, rows * width, 1);
    values += rows * width;
  }
}

// Makes of random weights ones for tests of bits (tensor/ops/cancelling.h): all that a linear layer reads repeats its
// first half, all it multiplies with negates it, so that every layer's output is a residue of rounding; the weights are
// large, so that the residues are about 1. For untied embeddings, sizes that are multiples of 4 and an even number of
// kv heads; biases and norms stay what they are, repeated.
inline void make_cancelling(Weights& weights) {
  COLLIMATE_CHECK(!weights.shape().tied_embeddings && weights.shape().blocks.front().attention.kv_heads % 2 == 0);
  for (size_t i = 0; i < weights.params().size(); ++i) {
    const shape::ParamSpec& spec = weights.params()[i];
    const tensor::HostEdit values = testing::edit_of(weights, static_cast<int>(i));
    if (spec.kind == shape::ParamKind::kEmbedding) {
      tensor::make_repeating(values.data(), spec.sizes[0], spec.sizes[1]);
    } else if (spec.kind == shape::ParamKind::kLinear) {
      for (int64_t j = 0; j < spec.count(); ++j) values[j] *= 0x1p20F;
      tensor::make_cancelling(values.data(), spec.sizes[0], spec.sizes[1]);
      if (spec.part != shape::Part::kHead) repeat_rows(spec, values.data(), spec.sizes[1]);
    } else {
      repeat_rows(spec, values.data(), 1);
    }
  }
  weights.commit();
}

// Does the same to adapters of an even rank, after make_cancelling and fill_adapters: what A gives repeats its first
// half.
inline void make_adapters_cancelling(Weights& weights) {
  COLLIMATE_CHECK(weights.options().lora.rank % 2 == 0);
  for (size_t i = weights.own_params(); i < weights.params().size(); ++i) {
    const shape::ParamSpec& spec = weights.params()[i];
    const tensor::HostEdit values = testing::edit_of(weights, static_cast<int>(i));
    for (int64_t j = 0; j < spec.count(); ++j) values[j] *= 0x1p20F;
    tensor::make_cancelling(values.data(), spec.sizes[0], spec.sizes[1]);
    repeat_rows(spec, values.data(), spec.sizes[1]);
  }
  weights.commit();
}

}  // namespace collimate::model::testing
