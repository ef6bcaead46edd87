#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/comm/group.h"
#include "collimate/tensor/exec.h"

namespace collimate::model {

// Connects a rank with those with which it shares a model along one mesh axis: tensor, stages, experts, tokens or
// copies. All of these ranks call the same functions in the same order. Where nothing is exchanged a function returns
// what it was given.
struct RankLine {
  comm::Group* group = nullptr;  // of these ranks alone; null: nothing is exchanged, as in a pass that is only measured
  double deadline_seconds = 600.0;

  // Replaces values [count] on the device by their sum over the ranks, for operations that `exec` is given later.
  void sum(const tensor::Exec& exec, float* values, int64_t count) const;
  void sum(std::span<float> values) const;  // of values on the host
  uint64_t sum(uint64_t value) const;       // mod 2^64
  double sum(double value) const;           // in rank order
  int64_t most(int64_t value) const;        // largest of all ranks' values, which are below 2^24
  // Collects a parameter that rank `owner` gives: the first rank gets its values, every other rank an empty list.
  std::vector<float> gather(int owner, int64_t count, std::vector<float> values) const;
};

}  // namespace collimate::model
