#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/generate/beams.h"
#include "collimate/generate/engine.h"

namespace collimate::generate {

// Searches for the completions that are likeliest as a whole. Returns the samples_per_prompt best ones of each prompt,
// at most as many as there are beams, in order of prompt, then score. Blocks. Nothing is drawn: of `params` only those
// act that say where a completion ends or which form it has, and penalties and biases, on each beam's own tokens. The
// search goes by sums of log-probs after penalties and biases; the log-probs in the result are the model's own. If the
// form allows fewer completions than asked for, the rest are empty, with Finish::kError and a score of -infinity. Beams
// share the cache blocks of their common beginnings. Throws InputError for a prompt that is empty, too long or has an
// id outside the vocabulary; for any other parameter of `params` that is not at its default (a temperature of 0 counts
// as the default) or that Service::submit refuses; for speculation; for more samples than beams; for more beams
// than kMostTopTokens or max_batch_tokens allow; and for fewer cache_blocks than the beams of the longest prompt need,
// where 0 takes as many as are needed.
std::vector<Completion> beam_all(model::Model& model, std::span<const std::vector<int32_t>> prompts,
                                 const BeamParams& beams, const SamplingParams& params, EngineOptions options = {},
                                 const EngineListener& listener = {});

// Calls beam_all if there are several beams, else generate_all. Throws InputError if another parameter of a search is
// set without several beams.
std::vector<Completion> complete_all(model::Model& model, std::span<const std::vector<int32_t>> prompts,
                                     const BeamParams& beams, const SamplingParams& params, EngineOptions options = {},
                                     const EngineListener& listener = {});

}  // namespace collimate::generate
