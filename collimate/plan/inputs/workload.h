#pragma once

#include "collimate/plan/inputs/lengths.h"

namespace collimate::plan {

// Settings are those of the program that runs the workload, where they are known.
struct Settings {
  double micro_batch_tokens = 8192;  // of a forward and backward whose layout does not say its rows
  double batch_rows = 0;             // that decode at once, at most; 0: Constants::batch_rows
  double pool_tokens = 0;            // in every replica's key-value cache; 0: enough for the rows that decode at once
  double cached_value_bytes = 0;     // of a number in the cache; 0: the device's value_bytes
};

constexpr int kMostStaleness = 16;  // that a user may allow

// The workload is what one iteration has to do.
struct Workload {
  double rows = 1024;  // completions per iteration
  Lengths prompt = Lengths::fixed(1024);
  Lengths completion = Lengths::fixed(1024);
  int updates = 8;    // optimizer steps per iteration
  int staleness = 0;  // iterations that a rollout may run ahead: a bound given by the user
  Settings settings = {};

  // Returns the moments of a row, which has a prompt and a completion whose lengths are independent of each other.
  Moments row_tokens() const {
    return {prompt.mean() + completion.mean(),
            prompt.mean_square() + completion.mean_square() + 2 * prompt.mean() * completion.mean()};
  }
  double tokens() const { return rows * row_tokens().mean; }
  double longest() const { return prompt.largest() + completion.largest(); }
};

}  // namespace collimate::plan
