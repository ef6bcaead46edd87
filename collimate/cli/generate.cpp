#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/flag_names.h"
#include "collimate/cli/generation.h"
#include "collimate/generate/completion_text.h"
#include "collimate/text/utf8.h"

namespace collimate::cli {
namespace {

// Throws InputError for flags about the rows of a file beside --prompt, where nothing would read them.
void check_rows(const GenerateCall& call) {
  if (!call.data.empty()) return;
  for (const auto& [option, flag] :
       {std::pair(&call.rows.long_rows, "--long-rows"), {&call.rows.bad_rows, "--bad-rows"}})
    if (option->get() != rlhf::kStopAtRow)
      throw base::InputError(base::expectation(flag, "--data FILE beside it, whose rows it is of", "--prompt"));
}

// Throws InputError for texts and files that do not fit together. `prompted`: --prompt was given, even if empty.
void check_texts(const GenerateCall& call, bool prompted) {
  if (call.data.empty() && !prompted)
    throw base::InputError(base::expectation("collimate generate", "--prompt TEXT or --data FILE", "neither"));
  if (!call.output.empty() && call.data.empty())
    throw base::InputError(base::expectation("--output", "--data FILE beside it, whose rows are completed", "none"));
  if (!text::is_valid_utf8(call.prompt))
    throw base::InputError(base::expectation("--prompt", "a text in UTF-8", "other bytes"));
  check_outputs({{"--output", call.output}}, {{"--data", call.data}});
}

// Sets the members that follow from other flags: --top-logprobs implies --logprobs, which implies --json.
void settle(GenerateCall& call) {
  call.log_probs |= call.top_log_probs > 0;
  call.json |= call.log_probs || call.stats;
  call.params = call.sampling.params(call.max_tokens);
  call.params.top_log_probs = call.top_log_probs;
  call.params.timeout_seconds = call.timeout;
}

constexpr const char* kGenerateHelp =
    "completes prompts, and judges the completions where --reward is given; tokens are drawn as the options say, and "
    "the model's generation_config.json gives no more than further end tokens";

bool read_arguments(const Arguments& arguments, GenerateCall& call) {
  CLI::App app{kGenerateHelp, "generate"};
  app.add_option("MODEL", call.model, "the directory of the model")->required();
  add_download_flag(app, call.download);
  auto* prompt = app.add_option("--prompt", call.prompt, "the prompt to complete");
  app.add_option("--data", call.data, "a file of rows with prompts, in any shape that training reads")
      ->excludes(prompt);
  app.add_option("--max-tokens", call.max_tokens, "most tokens of a completion")
      ->check(at_least(1))
      ->capture_default_str();
  add_flags(app, call.sampling);
  add_flags(app, call.layout);
  add_flags(app, call.rows);
  app.add_option("-n,--n", call.samples, "how many completions each prompt gets")
      ->check(at_least(1))
      ->capture_default_str();
  app.add_option("--seed", call.seed, "seed of the draws")->check(at_least(0))->capture_default_str();
  app.add_flag("--logprobs", call.log_probs, "print the log-prob of each token (implies --json)");
  app.add_option("--top-logprobs", call.top_log_probs,
                 "how many of the most likely tokens are printed in each place (implies --logprobs)")
      ->check(from_to(0, generate::kMostTopLogProbs));
  app.add_option("--reward", call.rewards, kRewardHelp)->expected(1)->take_all();
  auto* output = app.add_option("--output", call.output,
                                "with --data: the file to write, one line for each completion with the columns of its "
                                "row; the same command continues where the file ends");
  app.add_option("--timeout", call.timeout, "seconds after which completions end as they are; 0 sets no limit")
      ->excludes(output)
      ->check(from_to(0, generate::kLongestTimeout));
  app.add_flag("--json", call.json,
               "print one JSON document: a list of the completions; with --long-rows or --bad-rows {completions, "
               "left_out}, with the counts of rows that were left out or cut")
      ->excludes(output);
  app.add_flag("--stats", call.stats, "add what the engine counted: {completions, engine, int8} (implies --json)")
      ->excludes(output);
  if (!parse(app, arguments)) return false;
  check_texts(call, prompt->count() > 0);
  check_rows(call);
  settle(call);
  return true;
}

// An Asked holds the prompts and, for each, the columns that rewards read, among them its text.
struct Asked {
  std::vector<std::vector<int32_t>> ids;
  std::vector<nlohmann::json> columns;
  recipe::TruthRows truths;  // the first rows, for a trial of the rewards
  std::vector<recipe::LeftOutRows> left_out;
};

Asked asked_of(const GenerateCall& call, std::optional<PromptRows>& rows, const CompletingModel& model) {
  Asked asked;
  if (!rows) {
    asked.ids.push_back(model.renderer().prompt_tokens(call.prompt));
    asked.columns.push_back({{"prompt", call.prompt}});
    asked.truths.add("--prompt", call.prompt, asked.columns.front());
    recipe::warn_of_room({std::ssize(asked.ids.front())}, {model.positions(), call.max_tokens}, flag_names());
    return asked;
  }
  rows->render(model.renderer(), model.positions(), call.max_tokens);
  asked.ids = rows->ids();
  for (int64_t i = 0; i < std::ssize(asked.ids); ++i) asked.columns.push_back(rows->columns(i));
  asked.truths = rows->truths();
  asked.left_out = rows->left_out();
  return asked;
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

// A GenerateResult holds the completions with their rewards and the engine's counts.
struct GenerateResult {
  std::vector<generate::Completion> completions;
  std::vector<std::optional<double>> rewards;  // of each completion; empty where none are asked
  generate::ServiceStats stats;
};

void judge(Judges& judges, const CompletingModel& model, const Asked& asked, GenerateResult& result) {
  std::vector<rlhf::RewardSample> samples;
  for (const generate::Completion& c : result.completions)
    samples.push_back(
        reward_sample(model.tokenizer(), base::at(asked.ids, c.prompt), c, base::at(asked.columns, c.prompt)));
  result.rewards = judges.score(samples);
  judges.warn_of_failures();
}

void print_texts(const GenerateCall& call, const text::Tokenizer& tokenizer, const Asked& asked,
                 const GenerateResult& result) {
  for (size_t i = 0; i < result.completions.size(); ++i) {
    const generate::Completion& c = result.completions[i];
    std::string before = result.completions.size() > 1 ? fmt::format("[{}.{}] ", c.prompt, c.sample) : "";
    if (!result.rewards.empty())
      before += result.rewards[i] ? fmt::format("reward {:.4g}: ", *result.rewards[i]) : "no reward: ";
    fmt::print("{}{}\n", before,
               generate::completion_text(tokenizer, base::at(asked.ids, c.prompt), c.tokens, call.params));
  }
}

// Prints the list of completions as JSON, or an object with that list if the call asks for more.
void print_document(const GenerateCall& call, const CompletingModel& model, const Asked& asked,
                    const GenerateResult& result) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < result.completions.size(); ++i) {
    const generate::Completion& c = result.completions[i];
    nlohmann::ordered_json one = {{"prompt", base::at(asked.columns, c.prompt).at("prompt")}};
    one.update(completion_json(call, model.tokenizer(), base::at(asked.ids, c.prompt), c));
    if (!result.rewards.empty())
      one["reward"] = result.rewards[i] ? nlohmann::ordered_json(*result.rewards[i]) : nlohmann::ordered_json();
    list.push_back(std::move(one));
  }
  if (!call.stats && !call.rows.any()) return print_json(list);
  nlohmann::ordered_json document = {{"completions", std::move(list)}};
  if (call.rows.any()) document["left_out"] = asked.left_out;
  if (!call.stats) return print_json(document);
  document["engine"] = stats_json(result.stats);
  if (model.int8_error()) document["int8"] = to_json(*model.int8_error());
  print_json(document);
}

}  // namespace

int generate(const Arguments& arguments) {
  GenerateCall call;
  if (!read_arguments(arguments, call)) return 0;
  const nlohmann::json rewards = rewards_of(call.rewards);
  std::optional<PromptRows> rows;  // read before the model, so that bad rows are found early
  if (!call.data.empty()) rows.emplace(PromptFile{call.data, call.rows.choices(), flag_names()});
  if (!call.output.empty()) {
    generate_rows(call, *rows, rewards);
    return 0;
  }
  CompletingModel model(call);
  const Asked asked = asked_of(call, rows, model);
  std::optional<Judges> judges;
  if (!rewards.is_null()) judges.emplace(rewards).try_on(rows ? "--data" : "--prompt", asked.truths);
  GenerateResult result;
  result.completions = model.complete(asked.ids, 0, {}, result.stats);
  if (judges) judge(*judges, model, asked, result);
  if (call.json)
    print_document(call, model, asked, result);
  else
    print_texts(call, model.tokenizer(), asked, result);
  if (rows) log_left_out(*rows, std::ssize(result.completions), "generate");
  return 0;
}

}  // namespace collimate::cli
