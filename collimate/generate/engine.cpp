#include "collimate/generate/engine.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::generate {
namespace {

Batch requests_of(std::span<const std::vector<int32_t>> prompts, const std::vector<Completion>& completions,
                  const std::string& purpose) {
  std::vector<int64_t> uids, prompt_uids;
  std::vector<std::vector<int32_t>> ids;
  for (const Completion& completion : completions) {
    uids.push_back(completion.uid);
    prompt_uids.push_back(batch::make_uid(purpose + ".prompt", "", completion.prompt, 0, 0, 0));
    ids.push_back(prompts[completion.prompt]);
  }
  Batch requests(static_cast<int64_t>(uids.size()));
  requests.set(batch::kUid, std::move(uids));
  requests.set(batch::kPromptUid, std::move(prompt_uids));
  requests.set_ragged(batch::kIds, ids);
  return requests;
}

void fit(std::span<const std::vector<int32_t>> prompts, const SamplingParams& params, int64_t positions,
         int64_t completions, ServiceOptions& service) {
  size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
  const int64_t wanted = std::max<int64_t>(2, static_cast<int64_t>(longest) + params.max_tokens);
  if (service.max_sequence_tokens == 0) service.max_sequence_tokens = std::min(wanted, positions);
  service.max_batch_sequences = std::min(service.max_batch_sequences, completions);
}

void absorb(const Emission& emission, Completion& completion, Progress& progress) {
  completion.tokens.insert(completion.tokens.end(), emission.tokens.begin(), emission.tokens.end());
  completion.log_probs.insert(completion.log_probs.end(), emission.log_probs.begin(), emission.log_probs.end());
  completion.top_log_probs.insert(completion.top_log_probs.end(), emission.top_log_probs.begin(),
                                  emission.top_log_probs.end());
  completion.finish = emission.finish;
  progress.tokens += static_cast<int64_t>(emission.tokens.size());
  progress.finished += emission.finish != Finish::kRunning;
}

}  // namespace

std::vector<Completion> empty_completions(size_t prompts, const EngineOptions& options) {
  std::vector<Completion> completions;
  const auto all = static_cast<int64_t>(prompts) * options.samples_per_prompt;
  for (int64_t i = options.first_completion; i < all; ++i) {
    const int64_t prompt = i / options.samples_per_prompt, sample = i % options.samples_per_prompt;
    if (prompt % options.replicas != options.replica) continue;
    completions.push_back({.uid = batch::make_uid(options.purpose, options.dataset, prompt, 0, sample, 0),
                           .prompt = prompt,
                           .sample = sample});
  }
  return completions;
}

std::vector<Completion> generate_all(model::Model& model, std::span<const std::vector<int32_t>> prompts,
                                     const SamplingParams& params, EngineOptions options,
                                     const EngineListener& listener) {
  if (options.samples_per_prompt < 1) {
    throw base::InputError(
        base::expectation("generate.samples_per_prompt", "at least 1", fmt::to_string(options.samples_per_prompt)));
  }
  std::vector<Completion> completions = empty_completions(prompts.size(), options);
  if (completions.empty()) {  // other ranks that share the model's experts may have some, and step with this one
    while (model.end_step(false)) {
    }
    return completions;
  }
  Progress progress{.total = static_cast<int64_t>(completions.size())};
  options.service.sampling = params;
  fit(prompts, params, model.shape().positions(), progress.total, options.service);

  std::unordered_map<int64_t, Completion*> by_uid;
  for (Completion& completion : completions) by_uid[completion.uid] = &completion;
  Service service(model, options.service);
  service.submit(requests_of(prompts, completions, options.purpose));
  auto next = completions.begin();  // the first one that the listener has not been told of
  while (service.step()) {
    for (const Emission& emission : service.take()) absorb(emission, *by_uid.at(emission.uid), progress);
    progress.service = service.stats();
    if (listener.on_progress) listener.on_progress(progress);
    for (; next != completions.end() && next->finish != Finish::kRunning; ++next)
      if (listener.on_completion) listener.on_completion(*next);
  }
  return completions;
}

}  // namespace collimate::generate
