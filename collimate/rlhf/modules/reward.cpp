#include "collimate/rlhf/modules/reward.h"

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"

namespace collimate::rlhf {

std::vector<RewardSample> decode_samples(const Batch& rows, const text::Tokenizer& tokenizer) {
  std::vector<RewardSample> samples;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto ids = rows.row(batch::kIds, r);
    const auto prompt = static_cast<size_t>(rows.get(batch::kPromptTokens, r));
    RewardSample sample{.uid = rows.get(batch::kUid, r),
                        .prompt = tokenizer.decode(ids.subspan(0, prompt)),
                        .completion = tokenizer.decode(ids.subspan(prompt))};
    if (rows.has(batch::kExample.name)) sample.example = rows.json(batch::kExample, r);
    if (rows.has(batch::kFinish.name))
      sample.finished = rows.get(batch::kFinish, r) != static_cast<int32_t>(generate::Finish::kLength);
    samples.push_back(std::move(sample));
  }
  return samples;
}

RewardModule::RewardModule(const nlohmann::json& parameters) : parameters_(parameters) {}

std::vector<graph::FunctionSpec> RewardModule::functions() const {
  graph::FunctionSpec spec{.name = "score",
                           .kind = graph::Kind::kHost,
                           .needs = {"uid", "ids", "prompt_tokens", "finish", "example"},
                           .makes = {"reward"},
                           .granularity = graph::Granularity::kRow};
  for (const nlohmann::json& entry : parameters_.at("rewards"))
    if (!entry.value("deterministic", true)) spec.deterministic = false;
  return {spec};
}

void RewardModule::setup(flow::Context&) {
  tokenizer_ = text::load_tokenizer(parameters_.at("tokenizer"));
  rewards_ = make_rewards(parameters_.at("rewards"));
}

Batch RewardModule::call(const std::string&, const Batch& input, const flow::CallInfo&) {
  const ScoredSamples scored = score_samples(rewards_, decode_samples(input, *tokenizer_));
  std::vector<int64_t> kept;
  std::vector<float> rewards;
  for (size_t i = 0; i < scored.kept.size(); ++i) {
    if (!scored.kept[i]) continue;
    kept.push_back(static_cast<int64_t>(i));
    rewards.push_back(scored.rewards[i]);
  }
  metrics_.push_back({"reward/errors", static_cast<double>(scored.errors), flow::Reduce::kSum});
  for (const auto& [name, mean] : scored.means)
    metrics_.push_back({"rewards/" + name + "/mean", mean, flow::Reduce::kMean, static_cast<double>(input.rows())});
  Batch out = input.gather(kept);
  out.set(batch::kReward, rewards);
  return out;
}

std::vector<flow::Metric> RewardModule::metrics() { return std::exchange(metrics_, {}); }

}  // namespace collimate::rlhf
