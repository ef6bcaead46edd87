#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/generate/beams.h"
#include "collimate/generate/engine.h"

namespace collimate::generate {

// Searches the completions of all prompts that are likeliest as a whole: of each prompt the samples_per_prompt best, at
// most as many as it has beams, in order of prompt, then score. Blocking. Nothing is drawn: of `params` everything acts
// that says where a completion ends or what it has to be, and penalties and biases, on each beam's own tokens. Those
// change log-probs, whose sums are what is searched by; the log-probs that are given stay the model's own. Where what a
// completion has to be allows fewer than asked for, the rest are empty, with Finish::kError and a score of -infinity.
// Beams share the blocks of the cache that hold what they have in common. InputError: a prompt that is empty, too long
// or has an id outside the vocabulary; any other parameter of `params` that is not at its default (a temperature of 0
// is none), or one that Service::submit refuses; more samples than beams, more beams than kMostTopTokens or
// max_batch_tokens allow.
std::vector<Completion> beam_all(model::Model& model, std::span<const std::vector<int32_t>> prompts,
                                 const BeamParams& beams, const SamplingParams& params, EngineOptions options = {},
                                 const EngineListener& listener = {});

// Does that where there are several beams, else what generate_all does. InputError where a search's other parameters
// are set without beams.
std::vector<Completion> complete_all(model::Model& model, std::span<const std::vector<int32_t>> prompts,
                                     const BeamParams& beams, const SamplingParams& params, EngineOptions options = {},
                                     const EngineListener& listener = {});

}  // namespace collimate::generate
