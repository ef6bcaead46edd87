#include "collimate/generate/sampling_options.h"

#include "collimate/base/error.h"

namespace collimate::generate {

SamplingOptions::SamplingOptions(double default_temperature, bool greedy)
    : temperature(this, "temperature", default_temperature, "",
                  greedy ? "of sampling; 0 is greedy" : "of sampling, and of the trained log-probs",
                  greedy ? base::Check<double>(base::at_least(0.0)) : base::Check<double>(base::above(0.0))) {}

SamplingParams SamplingOptions::params(int64_t max_tokens) const {
  if (min_tokens > max_tokens) {
    throw base::InputError(
        base::expectation(min_tokens.where().empty() ? "min_tokens" : min_tokens.where(),
                          fmt::format("min_tokens to be at most the {} tokens of a completion", max_tokens),
                          fmt::to_string(min_tokens.get())));
  }
  SamplingParams params;
  params.max_tokens = max_tokens;
  params.temperature = temperature;
  params.top_p = top_p;
  params.top_k = top_k;
  params.min_p = min_p;
  params.presence_penalty = presence_penalty;
  params.frequency_penalty = frequency_penalty;
  params.repetition_penalty = repetition_penalty;
  params.logit_bias = parse_logit_bias(logit_bias).value();
  params.min_tokens = min_tokens;
  params.stop = stop;
  params.stop_ids.assign(stop_ids.begin(), stop_ids.end());
  params.ignore_eos = ignore_eos;
  return params;
}

}  // namespace collimate::generate
