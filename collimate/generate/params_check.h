#pragma once

#include <cstdint>
#include <string>

#include "collimate/generate/sampling.h"
#include "collimate/generate/service.h"

namespace collimate::generate {

// Throws InputError naming `where` for parameters that a model of `vocabulary` tokens cannot follow: ids outside the
// vocabulary, stop strings without a tokenizer, top_log_probs above kMostTopLogProbs, and min_tokens if every token is
// one that ends a completion.
void check_params(const SamplingParams& params, int64_t vocabulary, const ServiceOptions& options,
                  const std::string& where);

}  // namespace collimate::generate
