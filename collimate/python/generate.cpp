#include "collimate/python/generate.h"

#include <span>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/generate/completion_text.h"
#include "collimate/generate/engine.h"
#include "collimate/generate/sampling_options.h"
#include "collimate/generate/speculation_options.h"
#include "collimate/host/core_pool.h"
#include "collimate/host/cpu.h"
#include "collimate/host/hub_cache.h"
#include "collimate/model/model.h"
#include "collimate/python/process_scope.h"
#include "collimate/rlhf/modules/loading_options.h"
#include "collimate/text/chat_template.h"
#include "collimate/text/dataset.h"

namespace collimate::python {
namespace {

struct GenerateSection : generate::SamplingOptions {
  rlhf::ComputeOption compute{this, tensor::inference_type_words()};
  rlhf::ChatTemplateOption chat_template{this};
  generate::SpeculationOptions speculation{this};
  base::Option<std::string> model{this, "model", "", "", "model directory", base::not_empty()};
  base::Option<std::string> data{this, "data", "", "", "file of prompts", base::not_empty()};
  base::Option<int64_t> max_tokens{this,     "max_tokens",         generate::SamplingParams().max_tokens,
                                   "tokens", "new tokens at most", base::at_least(int64_t{1})};
  base::Option<int64_t> samples{this, "n", 1, "", "completions per prompt", base::at_least(int64_t{1})};
  base::Option<int64_t> seed{this, "seed", 0, "", "of the draws", base::at_least(int64_t{0})};
  base::Option<bool> log_probs{this, "logprobs", false, "", "log-prob of each token"};
};

generate::EngineOptions engine_options(const GenerateSection& asked, const text::Tokenizer& tokenizer,
                                       const tensor::Exec& exec) {
  generate::EngineOptions options{.samples_per_prompt = asked.samples};
  options.service.seed = static_cast<uint64_t>(asked.seed.get());
  options.service.exec = exec;
  options.service.eos_ids = tokenizer.info().stop_ids;
  options.service.tokenizer = &tokenizer;
  options.service.speculation_tokens = asked.speculation.tokens();
  return options;
}

nlohmann::ordered_json completed(const nlohmann::json& request, const SignalScope& signals) {
  GenerateSection asked;
  base::apply(request, "generate", asked);
  const generate::SamplingParams params = asked.params(asked.max_tokens);
  const text::Dataset dataset = text::Dataset::read({{.path = asked.data}});
  host::CorePool pool(host::core_count());
  const tensor::Exec exec{&pool};
  const std::string directory = host::model_directory(asked.model);
  const auto tokenizer = text::load_tokenizer(directory);
  const text::Renderer renderer(*tokenizer, text::make_chat_template(*tokenizer, asked.chat_template));
  const model::WeightsOptions weights{.compute = tensor::compute_type_of(asked.compute.get()), .mapped = true};
  model::Model model(model::load_huggingface(directory, "lm", weights, exec), exec);
  std::vector<std::vector<int32_t>> prompts;
  for (const text::Example& example : dataset.examples()) prompts.push_back(renderer.prompt_tokens(example.prompt));
  nlohmann::ordered_json made = nlohmann::ordered_json::array();
  const generate::EngineListener listener{.on_progress = [&](const auto&) { signals.throw_if_asked("generate"); }};
  for (const auto& c :
       generate::generate_all(model, prompts, params, engine_options(asked, *tokenizer, exec), listener)) {
    const std::vector<int32_t>& prompt = base::at(prompts, c.prompt);
    made.push_back({{"prompt", renderer.prompt_text(dataset.example(c.prompt).prompt)},
                    {"completion", generate::completion_text(*tokenizer, prompt, c.tokens, params)},
                    {"token_ids", c.tokens},
                    {"finish", generate::finish_reason(c.finish)}});
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
