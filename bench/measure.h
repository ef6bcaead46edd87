// The benches share these functions, which take samples of several sides in turn and compute their spread.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "collimate/base/deadline.h"

namespace collimate::bench {

constexpr double kSampleSeconds = 0.02;  // least duration of a sample

struct Spread {
  double median = 0, least = 0, largest = 0;
};

// Returns median, least and largest of the samples, of which there must be at least one.
inline Spread spread_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples.front(), samples.back()};
}

// Returns whether two sides are a tie, that is, whether their ranges touch.
inline bool tie(const Spread& a, const Spread& b) { return a.least <= b.largest && b.least <= a.largest; }

inline std::vector<float> noise(int64_t count, uint32_t seed = 12345) {
  std::vector<float> x(static_cast<size_t>(count));
  uint32_t state = seed;
  for (float& v : x) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
  }
  return x;
}

inline double seconds_of(const std::function<void()>& body) {
  const double begin = base::now_seconds();
  body();
  return base::now_seconds() - begin;
}

// Returns the mean seconds of a call, over as many calls as a sample needs. Calls before that, which are too few for a
// sample, warm up.
inline double seconds_per_call(const std::function<void()>& body) {
  for (int64_t calls = 1;; calls *= 2) {
    const double seconds = seconds_of([&] {
      for (int64_t i = 0; i < calls; ++i) body();
    });
    if (seconds >= kSampleSeconds) return seconds / static_cast<double>(calls);
  }
}

// Returns the mean seconds of a body's parts (such as forward and backward), which it measures and returns itself, with
// their sum as the last number.
inline std::vector<double> seconds_of_parts(const std::function<std::vector<double>()>& body) {
  std::vector<double> mean;
  for (int64_t calls = 1;; calls *= 2) {
    std::vector<double> sums;
    for (int64_t i = 0; i < calls; ++i) {
      const std::vector<double> parts = body();
      sums.resize(parts.size());
      for (size_t p = 0; p < parts.size(); ++p) sums[p] += parts[p];
    }
    const double all = std::accumulate(sums.begin(), sums.end(), 0.0);
    if (all < kSampleSeconds) continue;
    for (const double sum : sums) mean.push_back(sum / static_cast<double>(calls));
    mean.push_back(all / static_cast<double>(calls));
    return mean;
  }
}

// Takes a sample, one or more numbers, of every side in turn, for `rounds` rounds after a first one that does not count
// (with 0 rounds it counts). A pause of 10 ms before each sample lets threads go to sleep that still spin after the
// other side's work. Returns the spreads as [side][number].
using Side = std::function<std::vector<double>()>;
inline std::vector<std::vector<Spread>> take_turns(int rounds, const std::vector<Side>& sides) {
  std::vector<std::vector<std::vector<double>>> samples(sides.size());  // [side][number][round]
  for (int round = 0; round <= rounds; ++round)
    for (size_t side = 0; side < sides.size(); ++side) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::vector<double> numbers = sides[side]();
      samples[side].resize(numbers.size());
      if (round > 0 || rounds == 0)
        for (size_t n = 0; n < numbers.size(); ++n) samples[side][n].push_back(numbers[n]);
    }
  std::vector<std::vector<Spread>> spreads(sides.size());
  for (size_t side = 0; side < sides.size(); ++side)
    for (const std::vector<double>& numbers : samples[side]) spreads[side].push_back(spread_of(numbers));
  return spreads;
}

inline std::string in_ms(const Spread& seconds) {
  return fmt::format("{:.3f} ({:.3f} .. {:.3f})", seconds.median * 1e3, seconds.least * 1e3, seconds.largest * 1e3);
}

// Print the head of a table, or a line of it: our milliseconds, theirs, and the ratio of their median to ours.
inline void print_sides() {
  fmt::print("{:48} {:>30} {:>30} {:>7}\n", "work", "ours ms (least .. largest)", "ATen ms (least .. largest)",
             "ratio");
}
inline void print_sides(const std::string& name, const Spread& ours, const Spread& theirs) {
  fmt::print("{:48} {:>30} {:>30} {:7.2f}{}\n", name, in_ms(ours), in_ms(theirs), theirs.median / ours.median,
             tie(ours, theirs) ? " tie" : "");
  std::fflush(stdout);
}

}  // namespace collimate::bench
