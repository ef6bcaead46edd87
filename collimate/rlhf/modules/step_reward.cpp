#include "collimate/rlhf/modules/step_reward.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/trainable.h"
#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {
namespace {

bool says_something(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return std::isspace(c) == 0; });
}

// Finds where steps end in a text that comes token by token.
class StepReader {
 public:
  explicit StepReader(std::string separator) : separator_(std::move(separator)) {}

  // Returns whether a step that says something ends with the token that adds this text.
  bool ends_with(const std::string& added) {
    step_ += added;
    bool ends = false;
    for (size_t at = step_.find(separator_); at != std::string::npos; at = step_.find(separator_)) {
      ends = ends || says_something(std::string_view(step_).substr(0, at));
      step_.erase(0, at + separator_.size());
    }
    return ends;
  }
  bool in_step() const { return says_something(step_); }

 private:
  std::string separator_, step_;
};

}  // namespace

double reward_of_steps(const StepJudgement& reward, const std::vector<double>& probabilities) {
  COLLIMATE_CHECK(!probabilities.empty(), "a completion without steps");
  if (reward.of == "min") return *std::ranges::min_element(probabilities);
  if (reward.of == "mean")
    return std::accumulate(probabilities.begin(), probabilities.end(), 0.0) / static_cast<double>(probabilities.size());
  if (reward.of == "product")
    return std::accumulate(probabilities.begin(), probabilities.end(), 1.0, std::multiplies<>());
  return probabilities.back();
}

StepsOfCompletion steps_of_completion(std::span<const int32_t> ids, int64_t prompt_tokens,
                                      const text::Tokenizer& tokenizer, const StepJudgement& reward) {
  const std::vector<int32_t>& stops = tokenizer.info().stop_ids;
  if (std::ssize(ids) > prompt_tokens && std::ranges::find(stops, ids.back()) != stops.end())
    ids = ids.first(ids.size() - 1);
  StepsOfCompletion out{.ids = {ids.begin(), ids.end()}, .ends = std::vector<uint8_t>(ids.size(), 0)};
  StepReader reader(reward.separator);
  bool any = false;
  for (auto t = static_cast<size_t>(prompt_tokens); t < ids.size(); ++t) {
    const bool ends = reader.ends_with(tokenizer.token_bytes(ids[t]));
    out.ends[t] = ends ? 1 : 0;
    any = any || ends;
  }
  if (any && !reader.in_step()) return out;
  const std::vector<int32_t> separator = tokenizer.encode(reward.separator, {.continues = true});
  const auto with_it = static_cast<int64_t>(out.ids.size() + separator.size());
  if (reward.longest_tokens == 0 || with_it <= reward.longest_tokens)
    out.ids.insert(out.ids.end(), separator.begin(), separator.end());
  out.ends.resize(out.ids.size(), 0);
  out.ends.back() = 1;
  return out;
}

Batch with_step_rewards(model::Model& model, const text::Tokenizer& tokenizer, const StepJudgement& reward,
                        const Batch& rows, const train::ScoringOptions& options) {
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<uint8_t>> ends;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    StepsOfCompletion steps =
        steps_of_completion(rows.row(batch::kIds, r), rows.get(batch::kPromptTokens, r), tokenizer, reward);
    ids.push_back(std::move(steps.ids));
    ends.push_back(std::move(steps.ends));
  }
  Batch steps;
  steps.set(batch::kUid, rows.all(batch::kUid));
  steps.set_ragged(batch::kIds, ids);
  steps.set_ragged(batch::kTrainable, ends);
  steps = train::with_token_scores(model, steps, kStepScores, options);
  std::vector<float> rewards;
  for (int64_t r = 0; r < steps.rows(); ++r) {
    std::vector<double> probabilities;
    for (const float score : batch::at_trainable(steps, kStepScores, r))
      probabilities.push_back(1 / (1 + std::exp(-double{score})));
    rewards.push_back(static_cast<float>(reward_of_steps(reward, probabilities)));
  }
  Batch out = rows;
  out.set(batch::kReward, rewards);
  return out;
}

}  // namespace collimate::rlhf
