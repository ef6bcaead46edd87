#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/comm/group.h"
#include "collimate/tensor/exec.h"

namespace collimate::model {

// A rank's way to those with which it shares a model along one axis: tensor, stages, experts, tokens or copies. All of
// them call the same functions in the same order; each gives back what it was given where nothing is exchanged.
struct RankLine {
  comm::Group* group = nullptr;  // of just these ranks; null: nothing is exchanged, as where a pass is only measured
  double deadline_seconds = 600.0;

  // Values [count] on the device become their sum over the ranks, for what `exec` is given after.
  void sum(const tensor::Exec& exec, float* values, int64_t count) const;
  void sum(std::span<float> values) const;  // the host's
  uint64_t sum(uint64_t value) const;       // mod 2^64
  double sum(double value) const;           // in rank order
  int64_t most(int64_t value) const;        // of all ranks' values, which are below 2^24
  // Collects a parameter that rank `owner` has: the first rank gets it, others that gave it nothing.
  std::vector<float> gather(int owner, int64_t count, std::vector<float> values) const;
};

}  // namespace collimate::model
