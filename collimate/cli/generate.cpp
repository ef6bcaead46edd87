#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/progress.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/int8_error.h"
#include "collimate/generate/completion_text.h"
#include "collimate/generate/engine.h"
#include "collimate/generate/sampling_options.h"
#include "collimate/generate/speculation_options.h"
#include "collimate/host/core_pool.h"
#include "collimate/host/cpu.h"
#include "collimate/host/hub_download.h"
#include "collimate/model/model.h"
#include "collimate/rlhf/modules/loading_options.h"
#include "collimate/text/chat_template.h"
#include "collimate/text/dataset.h"
#include "collimate/text/utf8.h"

namespace collimate::cli {
namespace {

struct DrawOptions : generate::SamplingOptions {
  rlhf::ComputeOption compute{this, tensor::inference_type_words()};
  rlhf::ChatTemplateOption chat_template{this};
  generate::SpeculationOptions speculation{this};
  MeasureInt8Option measure_int8{this};
};

struct GenerateCall {
  std::string model, prompt, data;
  DrawOptions sampling;
  int64_t max_tokens = generate::SamplingParams().max_tokens;
  generate::SamplingParams params;  // the two above
  int64_t samples = 1;
  uint64_t seed = 0;
  bool log_probs = false;
  int64_t top_log_probs = 0;
  double timeout = 0;  // seconds; 0: none
  bool download = false;
  bool stats = false;
  bool json = false;
};

bool read_arguments(const Arguments& arguments, GenerateCall& call) {
  CLI::App app{"completes prompts", "generate"};
  app.add_option("MODEL", call.model, "model directory")->required();
  add_download_flag(app, call.download);
  auto* prompt = app.add_option("--prompt", call.prompt, "one prompt");
  app.add_option("--data", call.data, "file of prompts, in any shape with a prompt that training reads")
      ->excludes(prompt);
  app.add_option("--max-tokens", call.max_tokens, "new tokens at most")->check(at_least(1));
  add_flags(app, call.sampling);
  app.add_option("--n", call.samples, "completions per prompt")->check(at_least(1));
  app.add_option("--seed", call.seed, "of the draws")->check(at_least(0));
  app.add_flag("--logprobs", call.log_probs, "log-prob of each token (implies --json)");
  app.add_option("--top-logprobs", call.top_log_probs, "most likely tokens beside each (implies --logprobs)")
      ->check(from_to(0, generate::kMostTopLogProbs));
  app.add_option("--timeout", call.timeout, "seconds after which completions end with what they have; 0: none")
      ->check(from_to(0, generate::kLongestTimeout));
  app.add_flag("--json", call.json, "one JSON document: a list of the completions");
  app.add_flag("--stats", call.stats, "{completions, engine, int8}: with what the engine counted (implies --json)");
  if (!parse(app, arguments)) return false;
  if (call.prompt.empty() && call.data.empty() && prompt->count() == 0)
    throw base::InputError(base::expectation("collimate generate", "--prompt TEXT or --data FILE", "neither"));
  if (!text::is_valid_utf8(call.prompt))
    throw base::InputError(base::expectation("--prompt", "a text in UTF-8", "other bytes"));
  call.log_probs = call.log_probs || call.top_log_probs > 0;
  call.json = call.json || call.log_probs || call.stats;
  call.params = call.sampling.params(call.max_tokens);
  call.params.top_log_probs = call.top_log_probs;
  call.params.timeout_seconds = call.timeout;
  return true;
}

// Rows of text alone have no prompt: they are what is trained on.
const text::Prompt& prompt_of(const text::Example& example) {
  const auto* text = std::get_if<std::string>(&example.prompt);
  if (text == nullptr || !text->empty()) return example.prompt;
  throw base::InputError(base::expectation(example.location.text(), "a prompt to complete", "a column 'text' alone",
                                           R"(JSON lines {"prompt": "..."})"));
}

std::vector<text::Prompt> read_prompts(const GenerateCall& call) {
  if (call.data.empty()) return {call.prompt};
  std::vector<text::Prompt> prompts;
  const text::Dataset dataset = text::Dataset::read({{.path = call.data}});
  for (const text::Example& example : dataset.examples()) prompts.push_back(prompt_of(example));
  return prompts;
}

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

nlohmann::ordered_json stats_json(const generate::ServiceStats& stats) {
  nlohmann::ordered_json made = stats;
  made.update({{"slots", stats.slots},
               {"utilisation", stats.utilisation()},
               {"cache_blocks", stats.blocks},
               {"cache_blocks_peak", stats.blocks_peak},
               {"cache_bytes", stats.cache_bytes}});
  return made;
}

// A GenerateResult holds what was drawn and what is said of it.
struct GenerateResult {
  std::vector<std::vector<int32_t>> prompts;  // ids
  std::vector<generate::Completion> completions;
  generate::ServiceStats stats;
  std::optional<Int8Error> int8;
};

void print_result(const GenerateCall& call, const text::Renderer& renderer, const std::vector<text::Prompt>& prompts,
                  const GenerateResult& result) {
  const std::vector<generate::Completion>& completions = result.completions;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const generate::Completion& c : completions) {
    const std::string text =
        generate::completion_text(renderer.tokenizer(), base::at(result.prompts, c.prompt), c.tokens, call.params);
    if (!call.json) {
      fmt::print("{}{}\n", completions.size() > 1 ? fmt::format("[{}.{}] ", c.prompt, c.sample) : "", text);
      continue;
    }
    nlohmann::ordered_json one = {{"prompt", renderer.prompt_text(base::at(prompts, c.prompt))},
                                  {"completion", text},
                                  {"token_ids", c.tokens},
                                  {"finish", generate::finish_reason(c.finish)}};
    if (call.log_probs) one["logprobs"] = c.log_probs;
    if (call.top_log_probs > 0) one["top_logprobs"] = top_json(c);
    list.push_back(std::move(one));
  }
  if (!call.json) return;
  if (!call.stats) return print_json(list);
  nlohmann::ordered_json document = {{"completions", std::move(list)}, {"engine", stats_json(result.stats)}};
  if (result.int8) document["int8"] = to_json(*result.int8);
  print_json(document);
}

// Draws with a progress bar.
void complete_prompts(model::Model& model, const GenerateCall& call, const generate::EngineOptions& options,
                      GenerateResult& result) {
  base::Progress progress("generate", static_cast<int64_t>(result.prompts.size()) * call.samples);
  int64_t shown = 0;
  const auto show = [&](const generate::Progress& p) {
    result.stats = p.service;
    if (p.finished - shown < std::max<int64_t>(1, p.total / 20)) return;
    shown = p.finished;
    progress.update(p.finished, fmt::format("{} tokens", p.tokens));
  };
  result.completions = generate::generate_all(model, result.prompts, call.params, options, show);
}

void log_speculation(const generate::ServiceStats& stats) {
  base::log_info("speculation: {} of {} guessed tokens accepted, {} tokens decoded in {} steps", stats.accepted_tokens,
                 stats.proposed_tokens, stats.decoded_tokens, stats.steps);
}

}  // namespace

int generate(const Arguments& arguments) {
  GenerateCall call;
  if (!read_arguments(arguments, call)) return 0;
  const std::vector<text::Prompt> prompts = read_prompts(call);
  host::CorePool pool(host::core_count());
  const tensor::Exec exec{&pool};
  call.model = host::model_directory(call.model, call.download);
  const auto tokenizer = text::load_tokenizer(call.model);
  const text::Renderer renderer(*tokenizer, text::make_chat_template(*tokenizer, call.sampling.chat_template));
  const model::WeightsOptions weights{.compute = tensor::compute_type_of(call.sampling.compute.get()), .mapped = true};
  model::Model model(model::load_huggingface(call.model, "lm", weights, exec), exec);
  GenerateResult result;
  result.int8 = measured_int8(model, exec, *tokenizer, call.sampling.measure_int8);
  for (const text::Prompt& prompt : prompts) result.prompts.push_back(renderer.prompt_tokens(prompt));
  generate::EngineOptions options{.samples_per_prompt = call.samples};
  options.service.seed = call.seed;
  options.service.exec = exec;
  options.service.eos_ids = tokenizer->info().stop_ids;
  options.service.tokenizer = tokenizer.get();
  options.service.speculation_tokens = call.sampling.speculation.tokens();
  complete_prompts(model, call, options, result);
  print_result(call, renderer, prompts, result);
  if (options.service.speculation_tokens > 0) log_speculation(result.stats);
  return 0;
}

}  // namespace collimate::cli
