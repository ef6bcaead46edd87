#pragma once

#include <cstdint>

#include "collimate/base/philox.h"

namespace collimate::base {

// Draws for tests that try much at random: all follow from one number.
class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  int below(int n) { return static_cast<int>(random_bits(seed_, 0, 0, next_++) % static_cast<uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  uint64_t seed_;
  uint32_t next_ = 0;
};

}  // namespace collimate::base
