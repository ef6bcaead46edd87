#pragma once

#include <cstdint>
#include <vector>

#include "collimate/model/rank_line.h"
#include "collimate/shape/local.h"
#include "collimate/tensor/exec.h"

namespace collimate::model {

// These ranks hold the pieces of one model and compute it together: all of them make every call of a Model, with the
// same arguments. By default there is one rank.
struct TensorRanks : RankLine {
  shape::TensorRank place;
  bool several() const { return place.ranks > 1; }
  // Replaces values [count] on the device by their maximum over the ranks, for operations that `exec` is given later.
  void max(const tensor::Exec& exec, float* values, int64_t count) const;
  // Collects a parameter of the whole model: every rank gives its values, the first one gets [whole's sizes], the
  // others an empty list.
  std::vector<float> gather(const shape::ParamSpec& whole, std::vector<float> values) const;
};

}  // namespace collimate::model
