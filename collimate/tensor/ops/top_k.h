#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collimate/base/at.h"

namespace collimate::tensor {

struct TokenLogProb {
  int32_t token = 0;
  float log_prob = 0;
};

constexpr int64_t kMostTopTokens = 20;  // of one row

// A RunningTopK keeps the largest values of a row that it is shown chunk by chunk: larger ones first, of equal ones the
// smaller id first. Only comparisons decide, so that neither the cut into chunks nor the instruction set changes
// anything. Where a row has NaN, the ids are some of the row's ids.
class RunningTopK {
 public:
  explicit RunningTopK(int64_t most);  // in [1, kMostTopTokens]

  // Shows values [count] of the ids from `first` on, which must be larger than all ids shown before.
  void add(const float* values, int64_t first, int64_t count);

  int64_t size() const { return size_; }  // min(most, values shown)
  int32_t id(int64_t rank) const { return base::at(ids_, rank); }
  float value(int64_t rank) const { return base::at(values_, rank); }

 private:
  void insert(float x, int32_t id);

  int64_t most_;
  int64_t size_ = 0;
  std::array<float, kMostTopTokens> values_{};
  std::array<int32_t, kMostTopTokens> ids_{};
};

}  // namespace collimate::tensor
