#include "collimate/recipe/learning_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>

namespace collimate::recipe {
namespace {

constexpr size_t kIterations = 10;  // that a sign lasts before it is said
constexpr int64_t kSaid = -1;
constexpr double kFarFromReference = 1;  // nats a token
constexpr double kRisen = 1.5;           // times the first loss
constexpr size_t kFewest = 3;            // losses of which a mean says something

double value_or(const base::MetricsRecord& record, const char* name, double otherwise) {
  const double* value = record.find(name);
  return value == nullptr || !std::isfinite(*value) ? otherwise : *value;
}

bool rewards_are_equal(const base::MetricsRecord& record) {
  if (value_or(record, "critic/rewards/frac_zero_std", 0) >= 1) return true;
  const double* most = record.find("critic/rewards/max");
  const double* least = record.find("critic/rewards/min");
  return most != nullptr && least != nullptr && *most == *least;
}

// Nine of ten groups have equal rewards, and nearly all rewards are the largest one: what is left to learn is little.
bool prompts_are_solved(const base::MetricsRecord& record) {
  constexpr double kNearlyAll = 0.9;
  if (value_or(record, "critic/rewards/frac_zero_std", 0) < kNearlyAll) return false;
  const double most = value_or(record, "critic/rewards/max", 0), least = value_or(record, "critic/rewards/min", 0);
  if (most <= 0) return false;  // rewards of at most 0 do not say that a prompt is solved
  return most == least || value_or(record, "critic/rewards/mean", least) - least >= kNearlyAll * (most - least);
}

bool rewards_fail(const base::MetricsRecord& record) { return value_or(record, "reward/errors", 0) > 0; }

bool has_rewards(const base::MetricsRecord& record) { return record.find("critic/rewards/mean") != nullptr; }

// The meaning of equal rewards depends on their value. Rules give 1 where an answer is right, and else 0.
const char* equal_rewards_text(const base::MetricsRecord& record) {
  if (rewards_fail(record))
    return "the samples of each prompt had equal rewards in {} iterations in a row, and nothing can be learned from "
           "them: rewards failed (reward/errors counts them, the log has the first); mend the reward";
  const double most = value_or(record, "critic/rewards/max", 0.5), least = value_or(record, "critic/rewards/min", 0.5);
  if (most == least && most == 1)
    return "all rewards were 1 in {} iterations in a row, and nothing can be learned from them: the prompts are "
           "solved, "
           "or too easy; try harder ones";
  if (most == least && most == 0)
    return "all rewards were 0 in {} iterations in a row, and nothing can be learned from them: read samples/; if an "
           "answer there deserves more, mend the reward, and if none does, try easier prompts or a better model";
  return "the samples of each prompt had equal rewards in {} iterations in a row, and nothing can be learned from "
         "them: "
         "look at samples/, and try another reward, or prompts of which some are answered well";
}

// An environment is not asked about a turn that the limit of the whole completion has cut.
const char* cut_completions_text(const base::MetricsRecord& record) {
  if (record.find("rollout/turns/mean") != nullptr)
    return "every sample was cut at its limit in {} iterations in a row: if no turn ends, try turn_tokens of the gym "
           "entry or a text in rollout.stop, and if no episode does, more max_turns or rollout.completion_tokens";
  return "every completion was cut at its limit in {} iterations in a row: try a larger rollout.completion_tokens, or "
         "a "
         "model that ends its answers";
}

constexpr const char* kEqualRewards = "equal rewards";

struct Sign {
  const char* name;
  bool (*shows)(const base::MetricsRecord& record);
  const char* (*text)(const base::MetricsRecord& record);  // with the number of iterations
  const char* instead = "";                                // another sign, which says this one too where both show
};

constexpr Sign kSigns[] = {
    {kEqualRewards, rewards_are_equal, equal_rewards_text},
    {"solved prompts", prompts_are_solved,
     [](const base::MetricsRecord&) {
       return "nearly every prompt got its largest reward for all of its samples in {} iterations in a row, and "
              "nothing "
              "can be learned from such a prompt: the model solves almost all of them; try harder prompts or a "
              "stricter "
              "reward";
     },
     kEqualRewards},
    {"failed rewards", rewards_fail,
     [](const base::MetricsRecord&) {
       return "rewards failed in {} iterations in a row (reward/errors counts them, the log has the first of each): "
              "what on_error put in their place was trained on; try mending the reward";
     },
     kEqualRewards},
    {"cut completions",
     [](const base::MetricsRecord& record) { return value_or(record, "response_length/clip_ratio", 0) >= 1; },
     cut_completions_text},
    {"no gradient",
     [](const base::MetricsRecord& record) {
       return !has_rewards(record) && value_or(record, "actor/grad_norm", 1) == 0;
     },
     [](const base::MetricsRecord&) {
       return "the gradient was 0 in {} iterations in a row, and nothing is learned any more, as after updates that "
              "were "
              "much too large: look at samples/, and begin again with a lower train.learning_rate";
     }},
    {"far from the reference",
     [](const base::MetricsRecord& record) { return value_or(record, "actor/kl_loss", 0) > kFarFromReference; },
     [](const base::MetricsRecord&) {
       return "the KL divergence from the reference (actor/kl_loss) was above 1 nat a token in {} iterations in a row: "
              "try a larger algorithm.beta or a lower train.learning_rate";
     }},
    // This is the same KL, by the estimator of the penalty that PPO takes off its rewards.
    {"far from the reference, by the penalty",
     [](const base::MetricsRecord& record) {
       return value_or(record, "actor/reward_kl_penalty", 0) > kFarFromReference;
     },
     [](const base::MetricsRecord&) {
       return "the KL divergence from the reference (actor/reward_kl_penalty) was above 1 nat a token in {} iterations "
              "in a row: try a larger algorithm.kl_coefficient or a lower train.learning_rate";
     }}};

// Returns the largest squared reward. Values that are all 0 have at most half of it as loss, as returns are rewards.
double squared_reward(const base::MetricsRecord& record) {
  const double most = value_or(record, "critic/rewards/max", 0), least = value_or(record, "critic/rewards/min", 0);
  return std::max(most * most, least * least);
}

using Losses = std::span<const double>;

double mean(const Losses& losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

// Returns whether the losses lie above `least` by more than twice their spread. Logarithms are compared, as losses
// differ in proportion to their size: those of updates of single rows, and those that have diverged.
bool lie_above(const Losses& losses, double least) {
  std::vector<double> logs, squares;
  for (const double loss : losses) logs.push_back(std::log(std::max(loss, 1e-300)));
  for (const double log : logs) squares.push_back((log - mean(logs)) * (log - mean(logs)));
  return mean(logs) - std::log(least) > 2 * std::sqrt(mean(squares));
}

}  // namespace

struct LearningWatch::Loss {
  const char* name;
  const char* metric;
  bool (*says_something)(const base::MetricsRecord& record);
  double (*least)(const base::MetricsRecord& record);  // the least loss that it has risen from
  const char* text;                                    // with the first loss, the last mean and how many iterations

  std::string risen(double from, double to, size_t iterations) const {
    return fmt::format(fmt::runtime(text), from, to, iterations);
  }
};

// A policy's own loss is about 0 whatever it learns. A value model's grows with the rewards until it has learned them.
const LearningWatch::Loss LearningWatch::kLosses[] = {
    {"risen loss", "actor/loss", [](const base::MetricsRecord& record) { return !has_rewards(record); },
     [](const base::MetricsRecord&) { return 0.0; },
     "the loss has risen from {:.4g} to {:.4g} (the mean of {} iterations); try a lower train.learning_rate or a "
     "longer "
     "train.warmup_updates"},
    {"risen value loss", "critic/vf_loss", [](const base::MetricsRecord& record) { return squared_reward(record) > 0; },
     squared_reward,
     "the value model's loss has risen from {:.4g} to {:.4g} (the mean of {} iterations); try a lower "
     "train.value_learning_rate or a smaller algorithm.value_clip"}};

void LearningWatch::say(const std::string& sign, std::string text) {
  running_[sign] = kSaid;
  warnings_.push_back(std::move(text));
}

void LearningWatch::look_at(const Loss& loss, const base::MetricsRecord& record) {
  const double* value = record.find(loss.metric);
  if (value == nullptr || !std::isfinite(*value) || !loss.says_something(record)) return;
  std::deque<double>& losses = losses_[loss.metric];
  losses.push_back(*value);
  if (losses.size() > kIterations + 1) losses.erase(losses.begin() + 1);
  const double before = losses.front(), least = std::max(before, loss.least(record));
  const bool all = losses.size() > kIterations;
  const std::vector<double> last(losses.end() - static_cast<std::ptrdiff_t>(all ? kIterations : losses.size() / 2),
                                 losses.end());
  const bool rises = !last.empty() && before > 0 && mean(last) > kRisen * least;
  const bool stays = rises && last.size() >= kFewest && lie_above(last, least);
  diverged_[loss.metric] = stays ? loss.risen(before, mean(last), last.size()) : "";
  if (all && rises && running_[loss.name] != kSaid) say(loss.name, loss.risen(before, mean(last), last.size()));
}

std::string LearningWatch::diverged() const {
  for (const auto& [metric, text] : diverged_)
    if (!text.empty()) return text;
  return "";
}

std::vector<std::string> LearningWatch::add(const base::MetricsRecord& record) {
  const size_t before = warnings_.size();
  std::set<std::string> warned;  // signs of which this line has warned
  for (const Sign& sign : kSigns) {
    int64_t& running = running_[sign.name];
    if (running == kSaid) continue;
    running = sign.shows(record) ? running + 1 : 0;
    if (running > 0 && warned.contains(sign.instead)) running = kSaid;
    if (running == static_cast<int64_t>(kIterations)) {
      warned.insert(sign.name);
      say(sign.name, fmt::format(fmt::runtime(sign.text(record)), kIterations));
    }
  }
  for (const Loss& loss : kLosses) look_at(loss, record);
  return {warnings_.begin() + static_cast<std::ptrdiff_t>(before), warnings_.end()};
}

}  // namespace collimate::recipe
