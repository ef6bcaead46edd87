#pragma once

#include "collimate/base/option.h"
#include "collimate/base/section.h"
#include "collimate/generate/sampling.h"

namespace collimate::generate {

// How tokens are drawn, as rollouts, evaluation and the command line declare it: once.
struct SamplingOptions : base::Section {
  // `greedy`: a temperature of 0 is allowed.
  explicit SamplingOptions(double default_temperature = 1.0, bool greedy = true);

  base::Option<double> temperature;
  base::Option<double> top_p{
      this, "top_p", 1.0, "", "nucleus of this much probability", base::above(0.0), base::at_most(1.0)};
  base::Option<int64_t> top_k{
      this, "top_k", 0, "tokens", "draw from the k most likely; 0 from all", base::at_least(int64_t{0})};
  base::Option<double> min_p{
      this, "min_p", 0.0, "", "leave out tokens below this part of the most likely one", base::between(0.0, 1.0)};

  SamplingParams params(int64_t max_tokens) const;
};

}  // namespace collimate::generate
