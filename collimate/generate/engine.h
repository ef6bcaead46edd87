#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collimate/generate/service.h"
#include "collimate/model/model.h"

namespace collimate::generate {

struct EngineOptions {
  // A max_sequence_tokens of 0 becomes what the longest prompt and max_tokens need.
  ServiceOptions service;
  int64_t samples_per_prompt = 1;
  // The first completion to draw, in order of prompt, then sample; the ones before it exist already.
  int64_t first_completion = 0;
  // Replicas share the prompts: this one completes those whose number modulo `replicas` is `replica`.
  int64_t replica = 0, replicas = 1;
  // Parts of the uids, on which draws depend. The defaults are those of an evaluation's held-out rows.
  std::string purpose = "sample", dataset = "eval";
};

struct Completion {
  int64_t uid = 0;
  int64_t prompt = 0;  // its index
  int64_t sample = 0;  // in [0, samples_per_prompt)
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
  std::vector<TokenLogProb> top_log_probs;  // as in Emission
  Finish finish = Finish::kRunning;
  float score = 0;  // Beams::Hypothesis::score after a search; else 0
};

struct Progress {
  int64_t finished = 0;  // completions so far
  int64_t total = 0;     // completions
  int64_t tokens = 0;    // drawn so far
  ServiceStats service;
};

// These functions are called in the thread that generates: on_progress after every step, on_completion with each
// completion in order, as soon as it and all before it are done.
struct EngineListener {
  std::function<void(const Progress&)> on_progress = {};
  std::function<void(const Completion&)> on_completion = {};
};

// Returns this replica's completions as they are before any token is drawn, with their uids, prompts and samples.
std::vector<Completion> empty_completions(size_t prompts, const EngineOptions& options);

// Generates for all prompts of this replica. Blocks until the last is done, and returns the completions in order of
// prompt, then sample. The tokens of a completion depend on the prompt, its number and the sample's number alone.
// Throws InputError as Service::submit does.
std::vector<Completion> generate_all(model::Model& model, std::span<const std::vector<int32_t>> prompts,
                                     const SamplingParams& params, EngineOptions options = {},
                                     const EngineListener& listener = {});

}  // namespace collimate::generate
