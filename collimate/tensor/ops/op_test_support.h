#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "collimate/tensor/exec.h"
#include "collimate/tensor/kernels/isa.h"

namespace collimate::tensor {

using Floats = std::vector<float>;

// Uniform in [-1, 1) from a linear congruential generator.
inline Floats noise(int64_t count, uint32_t seed, float scale = 1.0F) {
  Floats x(static_cast<size_t>(count));
  uint32_t state = seed * 2654435761U + 12345U;
  for (float& v : x) {
    state = state * 1664525U + 1013904223U;
    v = scale * (static_cast<float>(state >> 8) / 8388608.0F - 1.0F);
  }
  return x;
}

inline Floats constant(int64_t count, float value) { return Floats(static_cast<size_t>(count), value); }
inline Floats nans(int64_t count) { return constant(count, std::numeric_limits<float>::quiet_NaN()); }

// Bits, so that NaN equals NaN and 0 differs from -0.
inline testing::AssertionResult same_bits(const float* a, const float* b, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (std::memcmp(a + i, b + i, sizeof(float)) != 0) {
      return testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return testing::AssertionSuccess();
}
inline testing::AssertionResult same_bits(const Floats& a, const Floats& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " elements";
  return same_bits(a.data(), b.data(), static_cast<int64_t>(a.size()));
}

inline testing::AssertionResult close(const Floats& got, const std::vector<double>& want, double tolerance) {
  if (got.size() != want.size()) return testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < got.size(); ++i) {
    if (!(std::fabs(got[i] - want[i]) <= tolerance * (1.0 + std::fabs(want[i])))) {
      return testing::AssertionFailure() << "element " << i << ": got " << got[i] << ", want " << want[i];
    }
  }
  return testing::AssertionSuccess();
}

// Results of `run` on every instruction set of this machine with 1 and with 3 threads: all the same bits. Returns them.
inline Floats same_everywhere(const std::function<Floats(const Exec&)>& run) {
  const InstructionSet before = instruction_set();
  host::CorePool three(3);
  set_instruction_set(InstructionSet::kAvx2);
  const Floats first = run(Exec{});
  for (const InstructionSet set : kInstructionSets) {
    if (set > best_instruction_set()) continue;
    set_instruction_set(set);
    EXPECT_TRUE(same_bits(run(Exec{}), first)) << name_of(set) << ", one thread";
    EXPECT_TRUE(same_bits(run(Exec{&three}), first)) << name_of(set) << ", three threads";
  }
  set_instruction_set(before);
  return first;
}

// Slope of `loss` in x[i], central difference in double.
inline double slope(Floats& x, size_t i, float step, const std::function<double()>& loss) {
  const float at = x[i];
  x[i] = at + step;
  const double above = loss();
  const double upper = x[i];
  x[i] = at - step;
  const double below = loss();
  const double lower = x[i];
  x[i] = at;
  return (above - below) / (upper - lower);
}

inline double dot(const Floats& a, const Floats& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// Every element's gradient against the slope of `loss`.
inline testing::AssertionResult slopes_match(Floats& x, const Floats& gradient, float step, double tolerance,
                                             const std::function<double()>& loss) {
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = slope(x, i, step, loss);
    if (!(std::fabs(gradient[i] - want) <= tolerance * (1.0 + std::fabs(want)))) {
      return testing::AssertionFailure() << "element " << i << ": gradient " << gradient[i] << ", slope " << want;
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace collimate::tensor
