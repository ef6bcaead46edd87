#include "collimate/rlhf/modules/reward.h"

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/base/stripped.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/completion_text.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/reward/rule_text.h"
#include "collimate/rlhf/types/episode.h"
#include "collimate/rlhf/types/reward_parts.h"
#include "collimate/text/utf8.h"

namespace collimate::rlhf {

RewardSample decoded_sample(std::span<const int32_t> prompt, std::span<const int32_t> completion,
                            const text::Tokenizer& tokenizer) {
  return {.prompt = text::valid_utf8(tokenizer.decode(prompt)),
          .completion = text::valid_utf8(generate::completion_text(tokenizer, prompt, completion, {}))};
}

std::vector<RewardSample> decode_samples(const Batch& rows, const text::Tokenizer& tokenizer) {
  std::vector<RewardSample> samples;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto ids = rows.row(batch::kIds, r);
    const auto prompt = static_cast<size_t>(rows.get(batch::kPromptTokens, r));
    RewardSample sample = decoded_sample(ids.first(prompt), ids.subspan(prompt), tokenizer);
    sample.uid = rows.get(batch::kUid, r);
    if (rows.has(batch::kExample.name)) sample.example = rows.json(batch::kExample, r);
    if (rows.has(kEpisode.name)) sample.episode = rows.json(kEpisode, r);
    if (rows.has(batch::kFinish.name))
      sample.finished = !generate::cut_off(static_cast<generate::Finish>(rows.get(batch::kFinish, r)));
    samples.push_back(std::move(sample));
  }
  return samples;
}

namespace {

struct TokenSteps {
  std::vector<int32_t> step;   // [L]
  std::vector<float> rewards;  // [L]
};

// Maps a completion's steps to its tokens. A step's reward goes to the token with the step's last byte; the part of
// `reward` that the steps leave goes to the last token.
TokenSteps on_tokens(std::span<const int32_t> ids, size_t prompt, const text::Tokenizer& tokenizer,
                     const std::vector<StepReward>& steps, double reward) {
  TokenSteps out{std::vector<int32_t>(ids.size(), -1), std::vector<float>(ids.size(), 0.F)};
  if (prompt == ids.size()) return out;
  if (steps.empty()) {  // one step: nothing to decode
    std::fill(out.step.begin() + prompt, out.step.end(), 0);
    out.rewards.back() = static_cast<float>(reward);
    return out;
  }
  std::vector<size_t> ends;  // bytes of the completion up to each token's end
  generate::CompletionText decoder(tokenizer, {}, ids.first(prompt));
  for (size_t bytes = 0; const int32_t id : ids.subspan(prompt))
    ends.push_back(bytes += text::valid_utf8(decoder.push(id)).size());
  double rest = reward;
  size_t first = 0;  // index in the completion of the token after the last step so far
  int32_t number = 0;
  for (const StepReward& step : steps) {
    const size_t end = std::min<size_t>(std::ranges::lower_bound(ends, step.end) - ends.begin(), ends.size() - 1);
    out.rewards[prompt + end] += static_cast<float>(step.value);
    rest -= step.value;
    if (end < first) continue;  // the step ends inside the token that ended the step before
    std::fill(out.step.begin() + prompt + first, out.step.begin() + prompt + end + 1, number++);
    first = end + 1;
  }
  std::fill(out.step.begin() + prompt + first, out.step.end(), number);
  out.rewards.back() += static_cast<float>(rest);
  return out;
}

// Returns the answer that a reward read out, or the completion's text without white space at both ends if none did.
std::string_view answer_of(const std::optional<std::string>& read_out, const RewardSample& sample) {
  return read_out ? std::string_view(*read_out) : base::stripped(sample.completion);
}

}  // namespace

RewardModule::RewardModule(const nlohmann::json& parameters) : parameters_(parameters) {}

std::vector<graph::FunctionSpec> RewardModule::functions() const {
  graph::FunctionSpec spec{.name = "score",
                           .kind = graph::Kind::kHost,
                           .needs = {"uid", "ids", "prompt_tokens", "finish", "example"},
                           .makes = {"reward", "step", "step_rewards", kRewardParts.name, kRewardWeights.name},
                           .granularity = graph::Granularity::kRow};
  for (const nlohmann::json& entry : parameters_.at("rewards")) {
    if (entry.contains("gym"))
      spec.needs.push_back(kEpisode.name);  // whose results the generator's journal has
    else if (!deterministic_reward(entry))
      spec.deterministic = false;
  }
  if (tells_answers()) spec.makes.push_back(kAnswer.name);
  return {spec};
}

void RewardModule::setup(flow::Context& context) {
  tokenizer_ = text::load_tokenizer(parameters_.at("tokenizer"));
  rewards_ = make_rewards(parameters_.at("rewards"));
  for (const RewardSpec& spec : rewards_) spec.reward->on_progress(context.progress);
}

Batch RewardModule::call(const std::string&, const Batch& input, const flow::CallInfo&) {
  const std::vector<RewardSample> samples = decode_samples(input, *tokenizer_);
  const ScoredSamples scored = score_samples(rewards_, samples);
  std::vector<int64_t> kept, answers;
  std::vector<float> rewards;
  std::vector<std::vector<int32_t>> step;
  std::vector<std::vector<float>> step_rewards, parts, weights;
  for (size_t i = 0; i < scored.kept.size(); ++i) {
    if (!scored.kept[i]) continue;
    kept.push_back(static_cast<int64_t>(i));
    parts.push_back(scored.parts[i]);
    std::vector<float>& weight = weights.emplace_back();
    for (const RewardSpec& spec : rewards_) weight.push_back(static_cast<float>(spec.weight));
    rewards.push_back(scored.rewards[i]);
    answers.push_back(static_cast<int64_t>(base::stable_hash(answer_of(scored.answers[i], samples[i]))));
    const auto row = static_cast<int64_t>(i);
    TokenSteps steps = on_tokens(input.row(batch::kIds, row), static_cast<size_t>(input.get(batch::kPromptTokens, row)),
                                 *tokenizer_, scored.steps[i], scored.rewards[i]);
    step.push_back(std::move(steps.step));
    step_rewards.push_back(std::move(steps.rewards));
  }
  measure(scored);
  Batch out = input.gather(kept);
  out.set(batch::kReward, rewards);
  out.set_ragged(batch::kStep, step);
  out.set_ragged(batch::kStepRewards, step_rewards);
  out.set_ragged(kRewardParts, parts);
  out.set_ragged(kRewardWeights, weights);
  if (tells_answers()) out.set(kAnswer, answers);
  return out;
}

void RewardModule::measure(const ScoredSamples& scored) {
  flow::Metric& errors =
      metrics_.emplace_back(flow::Metric{"reward/errors", static_cast<double>(scored.errors), flow::Reduce::kSum});
  if (scored.errors > 0) {
    errors.note = text::valid_utf8(fmt::format("{}; {}", scored.first_error, scored.first_effect));
    std::ranges::replace(errors.note, '\n', ' ');  // so that the log has one line
  }
  for (const RewardMean& mean : scored.means)
    metrics_.push_back(
        {"rewards/" + mean.reward + "/mean", mean.value, flow::Reduce::kMean, static_cast<double>(mean.samples)});
}

std::vector<flow::Metric> RewardModule::metrics() { return std::exchange(metrics_, {}); }

}  // namespace collimate::rlhf
