#include "collimate/generate/params_check.h"

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/generate/sampler_stages.h"

namespace collimate::generate {

void check_params(const SamplingParams& params, int64_t vocabulary, const ServiceOptions& options,
                  const std::string& where) {
  if (!params.stop.empty() && options.tokenizer == nullptr) {
    throw base::InputError(base::expectation(where, "no stop strings, as the service has no tokenizer",
                                             '"' + params.stop.front() + '"', "stop_ids, or a service with one"));
  }
  if (!params.logit_bias.empty() && params.logit_bias.rbegin()->first >= vocabulary) {
    throw base::InputError(base::expectation(where, fmt::format("logit_bias of token ids in [0, {})", vocabulary),
                                             fmt::to_string(params.logit_bias.rbegin()->first)));
  }
  const auto unknown =
      std::find_if(params.stop_ids.begin(), params.stop_ids.end(), [&](int32_t id) { return id >= vocabulary; });
  if (unknown != params.stop_ids.end()) {
    throw base::InputError(
        base::expectation(where, fmt::format("stop token ids in [0, {})", vocabulary), fmt::to_string(*unknown)));
  }
  if (params.top_log_probs < 0 || params.top_log_probs > kMostTopLogProbs) {
    throw base::InputError(base::expectation(where, fmt::format("top_logprobs in [0, {}]", kMostTopLogProbs),
                                             fmt::to_string(params.top_log_probs)));
  }
  if (params.min_tokens == 0) return;
  const auto ends = ending_ids(params, options.eos_ids);
  const auto forbidden =
      std::count_if(ends.begin(), ends.end(), [&](int32_t id) { return id >= 0 && id < vocabulary; });
  if (forbidden < vocabulary) return;
  throw base::InputError(base::expectation(where, "a token that min_tokens leaves to draw",
                                           "end of sequence and stop ids that are the whole vocabulary"));
}

}  // namespace collimate::generate
