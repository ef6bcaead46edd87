#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "collimate/tensor/exec.h"
#include "tests/support/tensor/kernels/with_isa.h"
#include "tests/support/tensor/ops/cancelling.h"

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

// Rows of numbers whose products with each other cancel: see cancelling.h.
inline Floats repeating(int64_t rows, int64_t k, uint32_t seed, float scale = 1.0F) {
  Floats x = noise(rows * k, seed, scale);
  make_repeating(x.data(), rows, k);
  return x;
}
inline Floats cancelling(int64_t rows, int64_t k, uint32_t seed, float scale = 1.0F) {
  Floats w = noise(rows * k, seed, scale);
  make_cancelling(w.data(), rows, k);
  return w;
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

// run(exec, "avx2, 2 threads") on every instruction set of this machine, ascending, with those numbers of threads.
inline void everywhere(const std::vector<int>& threads,
                       const std::function<void(const Exec&, const std::string&)>& run) {
  for (const InstructionSet set : sets_here()) {
    const WithInstructionSet chosen(set);
    for (const int count : threads) {
      host::CorePool pool(count);
      run(Exec{&pool}, std::string(name_of(set)).append(", threads: ").append(std::to_string(count)));
    }
  }
}

// Results of `run` on every instruction set of this machine with 1 and with 3 threads: all the same bits. Returns them.
inline Floats same_everywhere(const std::function<Floats(const Exec&)>& run) {
  Floats first;
  everywhere({1, 3}, [&](const Exec& exec, const std::string& where) {
    const Floats result = run(exec);
    if (first.empty()) first = result;
    EXPECT_TRUE(same_bits(result, first)) << where;
  });
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
