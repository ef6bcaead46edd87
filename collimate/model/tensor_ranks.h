#pragma once

#include <cstdint>
#include <vector>

#include "collimate/model/rank_line.h"
#include "collimate/shape/local.h"
#include "collimate/tensor/exec.h"

namespace collimate::model {

// The ranks that hold the pieces of one model, and compute it together: every call of a Model is one of all of them,
// with the same arguments. One rank by default.
struct TensorRanks : RankLine {
  shape::TensorRank place;
  bool several() const { return place.ranks > 1; }
  // Values [count] on the device become their maximum over the ranks, for what `exec` is given after.
  void max(const tensor::Exec& exec, float* values, int64_t count) const;
  // Collects a parameter of the whole model: every rank gives its values, the first one gets [whole's sizes], the
  // others nothing.
  std::vector<float> gather(const shape::ParamSpec& whole, std::vector<float> values) const;
};

}  // namespace collimate::model
