#pragma once

#include <cstdint>
#include <vector>

#include "collimate/comm/group.h"
#include "collimate/shape/local.h"
#include "collimate/tensor/exec.h"

namespace collimate::model {

// The ranks that hold the pieces of one model, and compute it together: every call of a Model is one of all of them,
// with the same arguments. One rank by default.
struct TensorRanks {
  shape::TensorRank place;
  comm::Group* group = nullptr;  // of just these ranks; null: nothing is summed, as where a pass is only measured
  double deadline_seconds = 600.0;

  bool several() const { return place.ranks > 1; }
  // Values [count] on the device become their sum over the ranks, for what `exec` is given after.
  void sum(const tensor::Exec& exec, float* values, int64_t count) const;
  // The same of their maximum.
  void max(const tensor::Exec& exec, float* values, int64_t count) const;
  uint64_t sum(uint64_t value) const;  // mod 2^64
  double sum(double value) const;      // in rank order
  // Collects a parameter of the whole model: every rank gives its values, the first one gets [whole's sizes], the
  // others nothing.
  std::vector<float> gather(const shape::ParamSpec& whole, std::vector<float> values) const;
};

}  // namespace collimate::model
