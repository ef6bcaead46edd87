#pragma once

#include "collimate/plan/inputs/lengths.h"

namespace collimate::plan {

// What one iteration has to do, whatever runs it.
struct Workload {
  double rows = 1024;  // completions per iteration
  Lengths prompt = Lengths::fixed(1024);
  Lengths completion = Lengths::fixed(1024);
  int updates = 8;    // optimizer steps per iteration
  int staleness = 0;  // iterations that a rollout may run ahead: a bound given by the user

  // Of one row: prompt and completion, whose lengths are independent of each other.
  Moments row_tokens() const {
    return {prompt.mean() + completion.mean(),
            prompt.mean_square() + completion.mean_square() + 2 * prompt.mean() * completion.mean()};
  }
  double tokens() const { return rows * row_tokens().mean; }
  double longest() const { return prompt.largest() + completion.largest(); }
};

}  // namespace collimate::plan
