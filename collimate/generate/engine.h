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
  int64_t first_completion = 0;  // those before it, in order of prompt, then sample, are there already: not drawn
  // Where replicas share the prompts each completes every replicas-th one, this one from the replica-th on.
  int64_t replica = 0, replicas = 1;
  // Parts of the uids, hence of the draws. So an evaluation names the samples of its held-out rows.
  std::string purpose = "sample", dataset = "eval";
};

struct Completion {
  int64_t uid = 0;
  int64_t prompt = 0;  // index
  int64_t sample = 0;  // in [0, samples_per_prompt)
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;
  std::vector<TokenLogProb> top_log_probs;  // as in Emission
  Finish finish = Finish::kRunning;
  float score = 0;  // where beams were searched: Beams::Hypothesis::score
};

struct Progress {
  int64_t finished = 0;  // completions
  int64_t total = 0;
  int64_t tokens = 0;  // drawn so far
  ServiceStats service;
};

// Who is told what, in the thread that generates: of the progress after every step, and of each completion in order, as
// soon as it and all before it are done.
struct EngineListener {
  std::function<void(const Progress&)> on_progress = {};
  std::function<void(const Completion&)> on_completion = {};
};

// Gives this replica's completions before any token is drawn: their uids and places.
std::vector<Completion> empty_completions(size_t prompts, const EngineOptions& options);

// Generates for all prompts of this replica and returns when the last is done: completions in order of prompt, then
// sample. Blocking. What is drawn depends on the prompt, its number and that of the sample alone. InputError as
// Service::submit.
std::vector<Completion> generate_all(model::Model& model, std::span<const std::vector<int32_t>> prompts,
                                     const SamplingParams& params, EngineOptions options = {},
                                     const EngineListener& listener = {});

}  // namespace collimate::generate
