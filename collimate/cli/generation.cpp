#include "collimate/cli/generation.h"

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/progress.h"
#include "collimate/cli/open_draft.h"
#include "collimate/generate/beam_search.h"
#include "collimate/generate/completion_text.h"
#include "collimate/host/hub_download.h"
#include "collimate/rlhf/modules/reward.h"

namespace collimate::cli {
namespace {

// A list for each token: the most likely ones in its place.
nlohmann::ordered_json top_json(const generate::Completion& c) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < c.tokens.size(); ++i) {
    nlohmann::ordered_json one = nlohmann::ordered_json::array();
    for (const auto& top : generate::top_of(c.top_log_probs, c.tokens.size(), i)) {
      one.push_back({{"token_id", top.token}, {"logprob", top.log_prob}});
    }
    list.push_back(std::move(one));
  }
  return list;
}

// Rows of text alone have no prompt.
const text::Prompt& prompt_of(const text::Example& example) {
  const auto* text = std::get_if<std::string>(&example.prompt);
  if (text == nullptr || !text->empty()) return example.prompt;
  throw base::InputError(base::expectation(example.location.text(), "a prompt to complete", "a column 'text' alone",
                                           R"(JSON lines {"prompt": "..."})"));
}

void log_speculation(const generate::ServiceStats& stats) {
  base::log_info("speculation: {} of {} guessed tokens accepted, {} tokens decoded in {} steps", stats.accepted_tokens,
                 stats.proposed_tokens, stats.decoded_tokens, stats.steps);
}

}  // namespace

CompletingModel::CompletingModel(const GenerateCall& call)
    : call_(call),
      open_(host::model_directory(call.model, call.download), call.sampling.compute, call.sampling.chat,
            call.sampling.latent_cache),
      draft_(open_draft(call.sampling.speculation, open_)),
      int8_error_(measured_int8(open_.model, open_.exec, *open_.tokenizer, call.sampling.measure_int8)) {}

std::vector<generate::Completion> CompletingModel::complete(
    const std::vector<std::vector<int32_t>>& prompts, int64_t first,
    const std::function<void(const generate::Completion&)>& on_completion, generate::ServiceStats& stats) {
  const generate::EngineOptions options{
      .service = open_.complete({.kv_type = call_.sampling.kv_cache_dtype.type(),
                                 .seed = call_.seed,
                                 .speculation_tokens = call_.sampling.speculation.tokens(),
                                 .draft = draft_.get()}),
      .samples_per_prompt = call_.samples,
      .first_completion = first};
  base::Progress progress("generate", static_cast<int64_t>(prompts.size()) * call_.samples, first);
  int64_t shown = 0;
  const auto show = [&](const generate::Progress& p) {
    stats = p.service;
    if (p.finished - shown < std::max<int64_t>(1, p.total / 20)) return;
    shown = p.finished;
    progress.update(first + p.finished, fmt::format("{} tokens", p.tokens));
  };
  auto completions = generate::complete_all(open_.model, prompts, call_.sampling.beams.params(), call_.params, options,
                                            {.on_progress = show, .on_completion = on_completion});
  if (options.service.speculation_tokens > 0) log_speculation(stats);
  return completions;
}

std::vector<text::Prompt> prompts_of(const text::Dataset& dataset) {
  std::vector<text::Prompt> prompts;
  for (const text::Example& example : dataset.examples()) prompts.push_back(prompt_of(example));
  return prompts;
}

void check_turns(const text::Dataset& dataset, const text::Renderer& renderer) {
  for (const text::Example& example : dataset.examples())
    text::require_marked_turns(example, renderer, 2,
                               "--chat-template chatml, or plain to join turns with nothing between");
}

nlohmann::ordered_json completion_json(const GenerateCall& call, const text::Tokenizer& tokenizer,
                                       const std::vector<int32_t>& prompt, const generate::Completion& completion) {
  nlohmann::ordered_json one = {
      {"completion", generate::completion_text(tokenizer, prompt, completion.tokens, call.params)},
      {"token_ids", completion.tokens},
      {"finish", generate::finish_reason(completion.finish)}};
  if (call.sampling.beams.beams > 1) one["score"] = completion.score;
  if (call.log_probs) one["logprobs"] = completion.log_probs;
  if (call.top_log_probs > 0) one["top_logprobs"] = top_json(completion);
  return one;
}

rlhf::RewardSample reward_sample(const text::Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                                 const generate::Completion& completion, const nlohmann::json& columns) {
  rlhf::RewardSample sample = rlhf::decoded_sample(prompt, completion.tokens, tokenizer);
  sample.uid = completion.uid;
  sample.example = columns;
  sample.finished = !generate::cut_off(completion.finish);
  return sample;
}

}  // namespace collimate::cli
