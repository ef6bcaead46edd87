#include "collimate/generate/sampling_options.h"

namespace collimate::generate {

SamplingOptions::SamplingOptions(double default_temperature, bool greedy)
    : temperature(this, "temperature", default_temperature, "",
                  greedy ? "of sampling; 0 is greedy" : "of sampling, and of the trained log-probs",
                  greedy ? base::Check<double>(base::at_least(0.0)) : base::Check<double>(base::above(0.0))) {}

SamplingParams SamplingOptions::params(int64_t max_tokens) const {
  SamplingParams params;
  params.max_tokens = max_tokens;
  params.temperature = temperature;
  params.top_p = top_p;
  params.top_k = top_k;
  params.min_p = min_p;
  return params;
}

}  // namespace collimate::generate
