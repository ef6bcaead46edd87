#include <algorithm>
#include <cmath>

#include "collimate/plan/published/scenario_parts.h"
#include "collimate/plan/published/text.h"

namespace collimate::plan::published {
namespace {

// Where a row gives none: mathematics prompts are short, PPO papers of 2023-24 pad to 1024.
constexpr double kShortPrompt = 200;
constexpr double kUsualLength = 1024;
constexpr double kUsualCap = 8192;
// Mean completion over its cap of models that reason at length: 0.19, 0.34 and 0.40 in Seer's three (2511.14617).
constexpr double kReasonedShare = 0.34;
constexpr double kUsualRows = 1024;
// DAPO's paper (2503.14476): 512 prompts of 16 completions, 16 updates.
constexpr double kGroup = 16, kDapoPrompts = 512;
constexpr int kDapoUpdates = 16;
// PPO's of 2409.19256 and of OpenRLHF's defaults (1,024 rows in batches of 128).
constexpr int kPpoUpdates = 8;
// DeepSpeed-Chat's epoch of "131.9k pairs" has 135.3M tokens of rows of 512: 264,292 rows.
constexpr double kRowsOfAPair = 2;
constexpr double kMostTokens = 1e7, kMostRows = 1e8;

bool in_groups(const Row& row) { return has(row["algo"], "GRPO") || has(row["algo"], "DAPO"); }

// Rows of an iteration that the text states; 0 where it states none.
double stated_rows(const Row& row, double tokens_per_row) {
  const std::string& text = row["batch"];
  if (const auto product = match(text, R"(([0-9]+) ?(?:prompts )?x ?([0-9]+))"); product && !has(text, "GBS"))
    return finite((*product)[0]).value_or(0) * finite((*product)[1]).value_or(0);
  if (const double prompts = number(text, R"(^([0-9]+) prompts)", 0); prompts > 0)
    return prompts * (in_groups(row) ? kGroup : 1);
  for (const char* pattern :
       {R"(<=([0-9]+) pairs)", R"(sample_per_episode ([0-9]+))", R"(^GBS ([0-9]+))", R"(^([0-9]+)(?: requests|$))"})
    if (match(text, pattern)) return number(text, pattern, 0);
  if (const double millions = number(text, R"(([0-9.]+)M tok)", 0); millions > 0)
    return std::round(millions * 1048576 / tokens_per_row);
  return has(row["algo"], "DAPO") ? kDapoPrompts * kGroup : kUsualRows;
}

int updates_of(const Row& row, const Scenario& scenario) {
  const std::string& text = row["batch"];
  const double rows = scenario.load.rows;
  const auto many = [](double count) { return static_cast<int>(std::clamp(std::round(count), 1.0, 1e6)); };
  if (const double size = number(text, R"(train GBS ([0-9]+))", 0); size > 0) return many(rows / size);
  if (const double count = number(text, R"(([0-9]+) minibatches)", 0); count > 0) return many(count);
  if (const double mini = number(text, R"(mini ([0-9]+))", 0); mini > 0)
    return many(number(text, R"(([0-9]+) prompts)", rows) / mini);
  if (scenario.models.contains("critic") && !has(text, "/step")) return many(std::min<double>(kPpoUpdates, rows));
  return text.empty() && has(row["algo"], "DAPO") ? kDapoUpdates : 1;
}

// Completions that are not all of one length; their mean, and cap beside the prompt.
void spread(double mean, double cap, Scenario& scenario) {
  scenario.mean_completion = mean;
  scenario.completion_cap = cap;
}

void read_completions(const Row& row, double prompt, Scenario& scenario) {
  const std::string& text = row["gen_len"];
  const bool total = has(text, "total");
  double cap = number(text, R"(max (?:total )?([0-9]+))", number(text, R"(^([0-9]+)$)", 0));
  if (has(text, "k context")) cap = 1024 * number(text, R"(([0-9]+)k context)", 0) - prompt;
  double mean = number(text, R"((?:avg|mean) ([0-9]+))", 0);
  if (total && mean > 0) mean -= prompt;
  if (total && cap > 0) cap -= prompt;
  scenario.load.completion = Lengths::fixed(kUsualLength);
  scenario.short_answers = has(row["actor"], "Qwen2") || has(row["actor"], "llama");  // no reasoning models
  if (const auto range = match(text, R"(^([0-9]+) ?- ?([0-9]+)$)")) {
    const double low = finite((*range)[0]).value_or(0), high = finite((*range)[1]).value_or(0);
    scenario.load.completion = Lengths::fixed(std::max(1.0, (low + high) / 2));
  } else if (mean > 0) {
    spread(mean, cap > mean ? cap : 4 * mean, scenario);
  } else if (cap > 0 && (in_groups(row) || has(text, "max") || has(text, "context"))) {
    spread(0, cap, scenario);
  } else if (const double fixed = number(text, R"(^([0-9]+))", 0); fixed > 0) {
    scenario.load.completion = Lengths::fixed(fixed);
  } else if (in_groups(row)) {
    spread(0, kUsualCap, scenario);
  }
}

}  // namespace

Scenario with_lengths(Scenario scenario, const Constants& c) {
  const double cap = scenario.completion_cap;
  if (cap <= 0) return scenario;
  double mean = scenario.mean_completion, sigma = constant_info(&Constants::length_sigma).value;
  if (mean <= 0 && scenario.short_answers) {
    mean = std::min(c.mean_tokens, cap / 2);
    sigma = c.length_sigma;
  }
  scenario.load.completion = Lengths::capped_mean(mean > 0 ? mean : kReasonedShare * cap, sigma, cap);
  return scenario;
}

void read_load(const Row& row, Scenario& scenario) {
  const bool short_prompts = in_groups(row) || !scenario.models.contains("critic");
  double prompt = number(row["prompt_len"], R"(^([0-9]+))", short_prompts ? kShortPrompt : kUsualLength);
  if (has(row["gen_len"], "avg"))
    prompt = std::min(prompt, 0.3 * number(row["gen_len"], R"(avg ([0-9]+))", 4 * prompt));
  scenario.load.prompt = Lengths::fixed(prompt);
  read_completions(row, prompt, scenario);
  if (prompt > kMostTokens || scenario.completion_cap > kMostTokens || scenario.load.completion.mean() > kMostTokens)
    throw NotModelled{"lengths '" + row["prompt_len"] + "' and '" + row["gen_len"] + "'"};
  scenario = with_lengths(std::move(scenario), constants_of(scenario.backend));
  scenario.load.rows = stated_rows(row, prompt + scenario.load.completion.mean());
  if (!(scenario.load.rows >= 1 && scenario.load.rows <= kMostRows))
    throw NotModelled{"rows of an iteration: '" + row["batch"] + "'"};
  scenario.load.updates = updates_of(row, scenario);
  scenario.run_rows = 1000 * number(row["batch"], R"(([0-9.]+)k (?:samples|prompts|rows)\b)", 0);
  if (scenario.run_rows == 0)
    scenario.run_rows = kRowsOfAPair * 1000 * number(row["batch"], R"(([0-9.]+)k pairs\b)", 0);
  if (scenario.run_rows == 0) scenario.run_rows = number(row["batch"], R"(\b([0-9]+) samples\b)", 0);
}

}  // namespace collimate::plan::published
