#pragma once

#include <cstdint>
#include <string>

#include "collimate/generate/sampling.h"
#include "collimate/generate/service.h"

namespace collimate::generate {

// InputError naming `where`: parameters that a model of `vocabulary` tokens cannot follow: ids outside it, stop strings
// without a tokenizer, more of the most likely tokens than there may be, ends that are all tokens beside min_tokens.
void check_params(const SamplingParams& params, int64_t vocabulary, const ServiceOptions& options,
                  const std::string& where);

}  // namespace collimate::generate
