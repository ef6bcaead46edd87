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
constexpr double kUsualRows = 1024;

double rows_of(const std::string& text, double tokens_per_row) {
  if (const auto product = match(text, R"(([0-9]+) ?(?:prompts )?x ?([0-9]+))"); product && !has(text, "GBS"))
    return std::stod((*product)[0]) * std::stod((*product)[1]);
  for (const char* pattern : {R"(<=([0-9]+) pairs)", R"(sample_per_episode ([0-9]+))", R"(^GBS ([0-9]+))",
                              R"(^([0-9]+)(?: prompts| requests|$))"})
    if (const double rows = number(text, pattern, 0); rows > 0) return rows;
  if (const double millions = number(text, R"(([0-9.]+)M tok)", 0); millions > 0)
    return std::round(millions * 1048576 / tokens_per_row);
  return kUsualRows;
}

int updates_of(const std::string& text, double rows) {
  if (const double size = number(text, R"(train GBS ([0-9]+))", 0); size > 0)
    return std::max(1, static_cast<int>(std::lround(rows / size)));
  if (const double count = number(text, R"(([0-9]+) minibatches)", 0); count > 0) return static_cast<int>(count);
  const double mini = number(text, R"(mini ([0-9]+))", 0);
  if (mini <= 0) return 1;
  const double prompts = number(text, R"(([0-9]+) prompts)", rows);
  return std::max(1, static_cast<int>(std::lround(prompts / mini)));
}

bool free_running(const Row& row) { return has(row["algo"], "GRPO") || has(row["algo"], "DAPO"); }

Lengths completion_of(const Row& row, double prompt, const Constants& c) {
  const std::string& text = row["gen_len"];
  const bool total = has(text, "total");
  double cap = number(text, R"(max (?:total )?([0-9]+))", number(text, R"(^([0-9]+)$)", 0));
  if (has(text, "k context")) cap = 1024 * number(text, R"(([0-9]+)k context)", 0) - prompt;
  if (const auto range = match(text, R"(^([0-9]+)-([0-9]+)$)"))
    return Lengths::fixed((std::stod((*range)[0]) + std::stod((*range)[1])) / 2);
  double mean = number(text, R"((?:avg|mean) ([0-9]+))", 0);
  if (total && mean > 0) {
    mean -= prompt;
    cap -= prompt;
  }
  if (mean > 0) return Lengths::capped_mean(mean, c.length_sigma, cap > mean ? cap : 4 * mean);
  if (cap > 0 && (free_running(row) || has(text, "max") || has(text, "context")))
    return Lengths::capped_mean(std::min(c.mean_tokens, cap / 2), c.length_sigma, cap);
  if (const double fixed = number(text, R"(^([0-9]+))", 0); fixed > 0) return Lengths::fixed(fixed);
  return free_running(row) ? Lengths::capped_mean(std::min(c.mean_tokens, kUsualCap / 2), c.length_sigma, kUsualCap)
                           : Lengths::fixed(kUsualLength);
}

}  // namespace

void read_load(const Row& row, Scenario& scenario) {
  const Constants c = constants_of(scenario.backend);
  const bool long_runs = free_running(row) || !scenario.models.contains("critic");
  double prompt = number(row["prompt_len"], R"(^([0-9]+))", long_runs ? kShortPrompt : kUsualLength);
  if (has(row["gen_len"], "avg"))
    prompt = std::min(prompt, 0.3 * number(row["gen_len"], R"(avg ([0-9]+))", 4 * prompt));
  scenario.load.prompt = Lengths::fixed(prompt);
  scenario.load.completion = completion_of(row, prompt, c);
  const double length = prompt + scenario.load.completion.mean();
  scenario.load.rows = rows_of(row["batch"], length);
  scenario.load.updates = updates_of(row["batch"], scenario.load.rows);
  scenario.epoch_rows = 1000 * number(row["batch"], R"(([0-9.]+)k pairs/epoch)", 0);
}

}  // namespace collimate::plan::published
