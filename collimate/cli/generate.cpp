#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/progress.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/loaded_model.h"
#include "collimate/generate/completion_text.h"
#include "collimate/generate/engine.h"
#include "collimate/generate/sampling_options.h"
#include "collimate/generate/speculation_options.h"
#include "collimate/host/cpu.h"
#include "collimate/rlhf/modules/loading_options.h"
#include "collimate/text/dataset.h"

namespace collimate::cli {
namespace {

struct DrawOptions : generate::SamplingOptions {
  rlhf::ComputeOption compute{this, tensor::inference_type_words()};
  rlhf::ChatTemplateOption chat_template{this};
  generate::SpeculationOptions speculation{this};
};

struct GenerateCall {
  std::string model, prompt, data;
  DrawOptions sampling;
  int64_t max_tokens = generate::SamplingParams().max_tokens;
  generate::SamplingParams params;  // the two above
  int64_t samples = 1;
  uint64_t seed = 0;
  bool log_probs = false;
  bool json = false;
};

bool read_arguments(const Arguments& arguments, GenerateCall& call) {
  CLI::App app{"completes prompts", "generate"};
  app.add_option("MODEL", call.model, "model directory")->required();
  auto* prompt = app.add_option("--prompt", call.prompt, "one prompt");
  app.add_option("--data", call.data, "file of prompts, in any shape that training reads")->excludes(prompt);
  app.add_option("--max-tokens", call.max_tokens, "new tokens at most")->check(at_least(1));
  add_flags(app, call.sampling);
  app.add_option("--n", call.samples, "completions per prompt")->check(at_least(1));
  app.add_option("--seed", call.seed, "of the draws")->check(at_least(0));
  app.add_flag("--logprobs", call.log_probs, "log-prob of each token (implies --json)");
  app.add_flag("--json", call.json, "one JSON document");
  if (!parse(app, arguments)) return false;
  if (call.prompt.empty() && call.data.empty() && prompt->count() == 0)
    throw base::InputError(base::expectation("collimate generate", "--prompt TEXT or --data FILE", "neither"));
  call.json = call.json || call.log_probs;
  call.params = call.sampling.params(call.max_tokens);
  return true;
}

std::vector<text::Prompt> read_prompts(const GenerateCall& call) {
  if (call.data.empty()) return {call.prompt};
  std::vector<text::Prompt> prompts;
  const text::Dataset dataset = text::Dataset::read({{.path = call.data}});
  for (const text::Example& example : dataset.examples()) prompts.push_back(example.prompt);
  return prompts;
}

void print_result(const GenerateCall& call, const text::Renderer& renderer, const std::vector<text::Prompt>& prompts,
                  const std::vector<generate::Completion>& completions) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const generate::Completion& c : completions) {
    const std::string text = generate::completion_text(renderer.tokenizer(), c.tokens, call.params);
    if (!call.json) {
      fmt::print("{}{}\n", completions.size() > 1 ? fmt::format("[{}.{}] ", c.prompt, c.sample) : "", text);
      continue;
    }
    nlohmann::ordered_json one = {{"prompt", renderer.prompt_text(prompts[static_cast<size_t>(c.prompt)])},
                                  {"completion", text},
                                  {"token_ids", c.tokens},
                                  {"finish", c.finish == generate::Finish::kLength ? "length" : "stop"}};
    if (call.log_probs) one["logprobs"] = c.log_probs;
    list.push_back(std::move(one));
  }
  if (call.json) print_json(list);
}

void log_speculation(const generate::ServiceStats& stats) {
  base::log_info("speculation: {} of {} guessed tokens accepted, {} tokens decoded in {} steps", stats.accepted_tokens,
                 stats.proposed_tokens, stats.decoded_tokens, stats.steps);
}

}  // namespace

int generate(const Arguments& arguments) {
  GenerateCall call;
  if (!read_arguments(arguments, call)) return 0;
  host::CorePool pool(host::core_count());
  const tensor::Exec exec{&pool};
  const auto tokenizer = text::load_tokenizer(call.model);
  const text::Renderer renderer(*tokenizer, text::make_chat_template(*tokenizer, call.sampling.chat_template));
  const model::WeightsOptions weights{.compute = tensor::compute_type_of(call.sampling.compute.get())};
  model::Model model(model::load_huggingface(call.model, "lm", weights, exec), exec);
  log_rounding(exec, model.weights());
  const std::vector<text::Prompt> prompts = read_prompts(call);
  std::vector<std::vector<int32_t>> ids;
  for (const text::Prompt& prompt : prompts) ids.push_back(renderer.prompt_tokens(prompt));
  generate::EngineOptions options{.samples_per_prompt = call.samples};
  options.service.seed = call.seed;
  options.service.exec = exec;
  options.service.eos_ids = tokenizer->info().stop_ids;
  options.service.tokenizer = tokenizer.get();
  options.service.speculation_tokens = call.sampling.speculation.tokens();
  base::Progress progress("generate", static_cast<int64_t>(prompts.size()) * call.samples);
  int64_t shown = 0;
  generate::ServiceStats stats;
  const auto completions = generate::generate_all(model, ids, call.params, options, [&](const generate::Progress& p) {
    stats = p.service;
    if (p.finished - shown < std::max<int64_t>(1, p.total / 20)) return;
    shown = p.finished;
    progress.update(p.finished, fmt::format("{} tokens", p.tokens));
  });
  print_result(call, renderer, prompts, completions);
  if (options.service.speculation_tokens > 0) log_speculation(stats);
  return 0;
}

}  // namespace collimate::cli
