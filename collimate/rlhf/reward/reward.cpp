#include "collimate/rlhf/reward/reward.h"

#include <cmath>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/functions.h"
#include "collimate/rlhf/reward/python_reward.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {

using base::expectation;
using base::InputError;

OnError OnError::parse(const nlohmann::json& json) {
  if (json == "drop") return {Action::kDrop};
  if (json == "stop") return {Action::kStop};
  if (json.is_number()) return {Action::kValue, json.get<double>()};
  throw InputError(expectation("reward.on_error", "drop, stop or a number", json.dump()));
}

namespace {

class FunctionReward final : public Reward {
 public:
  FunctionReward(Rule rule, bool pure) : rule_(std::move(rule)), pure_(pure) {}

  bool pure() const override { return pure_; }

  std::vector<RewardResult> score(const std::vector<RewardSample>& samples) override {
    std::vector<RewardResult> results;
    for (const RewardSample& sample : samples) {
      try {
        results.push_back({rule_(sample), ""});
      } catch (const std::exception& error) {
        results.push_back({std::nullopt, error.what()});
      }
    }
    return results;
  }

 private:
  Rule rule_;
  bool pure_;
};

std::unique_ptr<Reward> make_rule(const std::string& name, const nlohmann::json& entry) {
  std::string known;
  for (const auto& [key, make] : rules()) {
    if (key == name) return function_reward(make(entry), true);
    known += (known.empty() ? "" : ", ") + key;
  }
  throw InputError(expectation("reward", "one of the rules " + known, "\"" + name + "\""));
}

RewardSpec make_reward(const nlohmann::json& entry) {
  RewardSpec spec;
  if (!entry.is_object() || entry.contains("rule") + entry.contains("function") + entry.contains("python") != 1)
    throw InputError(
        expectation("reward", "a list of {rule: NAME}, {function: NAME} or {python: FILE.py:function}", entry.dump()));
  const auto name = [&](const char* key) {
    if (!entry.at(key).is_string())
      throw InputError(expectation(fmt::format("reward.{}", key), "a name", entry.at(key).dump()));
    return entry.at(key).get<std::string>();
  };
  if (entry.contains("rule")) {
    spec.name = name("rule");
    spec.reward = make_rule(spec.name, entry);
  } else if (entry.contains("function")) {
    spec.name = name("function");
    spec.reward = registered_reward(spec.name, entry);
  } else {
    const PythonRewardOptions options = PythonRewardOptions::parse(entry);
    spec.name = options.function;
    spec.reward = python_reward(options);
  }
  const nlohmann::json weight = entry.value("weight", nlohmann::json(1.0));
  if (!weight.is_number()) throw InputError(expectation("reward.weight", "a number", weight.dump()));
  spec.weight = weight;
  spec.on_error = OnError::parse(entry.value("on_error", nlohmann::json("stop")));
  return spec;
}

// Why a result is no reward, or "".
std::string failure(const RewardResult& result) {
  if (!result.value) return result.error.empty() ? "no reward" : result.error;
  return std::isfinite(*result.value) ? "" : fmt::format("reward is {}", *result.value);
}

// Adds one reward's share to `out`.
void add_reward(const RewardSpec& spec, const std::vector<RewardSample>& samples, ScoredSamples& out) {
  const std::vector<RewardResult> results = spec.reward->score(samples);
  COLLIMATE_CHECK(results.size() == samples.size(), "reward {} gave {} results", spec.name, results.size());
  double sum = 0, count = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::string problem = failure(results[i]);
    double value = problem.empty() ? *results[i].value : 0.0;
    if (problem.empty()) {
      sum += value;
      count += 1;
    } else {
      ++out.errors;
      const std::string message = fmt::format("[reward {}] sample {}: {}", spec.name, samples[i].uid, problem);
      if (out.first_error.empty()) out.first_error = message;
      if (spec.on_error.action == OnError::Action::kStop)
        throw base::RunError(message + "; try on_error: drop, or a value, for this reward");
      if (spec.on_error.action == OnError::Action::kDrop) out.kept[i] = false;
      value = spec.on_error.value;
    }
    out.rewards[i] += static_cast<float>(spec.weight * value);
  }
  if (count > 0) out.means.emplace_back(spec.name, sum / count);
}

}  // namespace

std::unique_ptr<Reward> function_reward(Rule rule, bool pure) {
  return std::make_unique<FunctionReward>(std::move(rule), pure);
}

std::vector<RewardSpec> make_rewards(const nlohmann::json& list) {
  std::vector<RewardSpec> specs;
  const nlohmann::json entries = list.is_array() ? list : nlohmann::json::array({list});
  for (const nlohmann::json& entry : entries) specs.push_back(make_reward(entry));
  if (specs.empty()) throw InputError(expectation("reward", "at least one reward", "none", "reward: [{rule: exact}]"));
  return specs;
}

ScoredSamples score_samples(const std::vector<RewardSpec>& rewards, const std::vector<RewardSample>& samples) {
  ScoredSamples out;
  out.rewards.assign(samples.size(), 0.F);
  out.kept.assign(samples.size(), true);
  for (const RewardSpec& spec : rewards) add_reward(spec, samples, out);
  for (size_t i = 0; i < samples.size(); ++i)
    if (!out.kept[i]) out.rewards[i] = 0.F;
  return out;
}

}  // namespace collimate::rlhf
