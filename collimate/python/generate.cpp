#include "collimate/python/generate.h"

#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/config.h"
#include "collimate/cli/generation.h"
#include "collimate/cli/open_draft.h"
#include "collimate/cli/open_model.h"
#include "collimate/cli/prompt_rows.h"
#include "collimate/generate/beam_search.h"
#include "collimate/generate/completion_text.h"
#include "collimate/host/hub_download.h"
#include "collimate/python/process_scope.h"

namespace collimate::python {
namespace {

struct GenerateSection : cli::CompletionOptions, rlhf::RowOptions {
  GenerateSection() : RowOptions(this) {}

  COLLIMATE_OPTION(std::string, model, "", "", "model directory", base::not_empty());
  COLLIMATE_OPTION(std::string, data, "", "", "file of prompts", base::not_empty());
  COLLIMATE_OPTION(int64_t, max_tokens, generate::SamplingParams().max_tokens, "tokens", "most tokens of a completion",
                   base::at_least(int64_t{1}));
  base::Option<int64_t> samples{this, "n", 1, "", "completions per prompt", base::at_least(int64_t{1})};
  COLLIMATE_OPTION(int64_t, seed, 0, "", "seed of the draws", base::at_least(int64_t{0}));
  base::Option<bool> log_probs{this, "logprobs", false, "", "log-prob of each token"};
  COLLIMATE_OPTION(bool, download, false, "", "download a model that the local cache does not have");
};

// Returns the argument of collimate.generate that stands for a key of a config or a flag.
std::string prompt_argument(const std::string& key) { return key == "data" ? "prompts" : key; }

nlohmann::ordered_json completed(const nlohmann::json& request, const SignalScope& signals) {
  GenerateSection asked;
  base::apply(request, "generate", asked);
  const generate::SamplingParams params = asked.params(asked.max_tokens);
  cli::PromptRows rows({asked.data, asked.choices(), {.of = prompt_argument, .between = "="}});
  cli::OpenModel open(host::model_directory(asked.model, asked.download), asked.chat,
                      {.compute = tensor::compute_type_of(asked.compute.get()), .latent_cache = asked.latent_cache});
  const auto draft = cli::open_draft(asked.speculation, open);
  rows.render(open.renderer, open.model.shape().positions(), asked.max_tokens);
  const std::vector<std::vector<int32_t>>& prompts = rows.ids();
  const generate::EngineOptions options{.service = open.complete({.kv_type = asked.kv_cache_dtype.type(),
                                                                  .seed = static_cast<uint64_t>(asked.seed.get()),
                                                                  .speculation_tokens = asked.speculation.tokens(),
                                                                  .draft = draft.get()}),
                                        .samples_per_prompt = asked.samples};
  nlohmann::ordered_json made = nlohmann::ordered_json::array();
  const generate::EngineListener listener{.on_progress = [&](const auto&) { signals.throw_if_asked("generate"); }};
  for (const auto& c : generate::complete_all(open.model, prompts, asked.beams.params(), params, options, listener)) {
    const std::vector<int32_t>& prompt = base::at(prompts, c.prompt);
    made.push_back({{"prompt", rows.columns(c.prompt).at("prompt")},
                    {"completion", generate::completion_text(*open.tokenizer, prompt, c.tokens, params)},
                    {"token_ids", c.tokens},
                    {"finish", generate::finish_reason(c.finish)}});
    if (asked.beams.beams > 1) made.back()["score"] = c.score;
    if (asked.log_probs) made.back()["logprobs"] = c.log_probs;
  }
  return made;
}

}  // namespace

nlohmann::ordered_json generate(const nlohmann::json& request) {
  const ProcessScope process;
  SignalScope signals;
  return unless_stopped(signals, [&] { return completed(request, signals); });
}

}  // namespace collimate::python
