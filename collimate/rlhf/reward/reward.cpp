#include "collimate/rlhf/reward/reward.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  if (json.is_number() && std::isfinite(json.get<double>())) return {Action::kValue, json.get<double>()};
  throw InputError(expectation("reward.on_error", "drop, stop or a finite number", json.dump()));
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
        Score score = rule_(sample);
        results.push_back({score.value, "", std::move(score.steps)});
      } catch (const std::exception& error) {
        results.push_back({std::nullopt, error.what()});
      }
      progress();
    }
    return results;
  }

 private:
  Rule rule_;
  bool pure_;
};

RewardSpec make_reward(const nlohmann::json& entry) {
  RewardSpec spec;
  check_reward(entry);
  const auto name = [&](const char* key) {
    if (!entry.at(key).is_string())
      throw InputError(expectation(fmt::format("reward.{}", key), "a name", entry.at(key).dump()));
    return entry.at(key).get<std::string>();
  };
  if (entry.contains("rule")) {
    spec.name = name("rule");
    spec.reward = function_reward(find_rule(spec.name, "reward").make(entry), true);
  } else if (entry.contains("function")) {
    spec.name = name("function");
    spec.reward = registered_reward(spec.name, entry);
  } else {
    const auto section = read_entry<PythonSection>(entry);
    spec.name = python_function(section.python).function;
    spec.reward = python_reward(section);
  }
  const nlohmann::json weight = entry.value("weight", nlohmann::json(1.0));
  if (!weight.is_number()) throw InputError(expectation("reward.weight", "a number", weight.dump()));
  spec.weight = weight;
  spec.on_error = OnError::parse(entry.value("on_error", nlohmann::json("stop")));
  if (!(std::abs(spec.weight * spec.on_error.value) <= std::numeric_limits<float>::max()))
    throw InputError(expectation("reward.on_error", "a value that times weight is within the range of float",
                                 fmt::format("{} times {}", spec.on_error.value, spec.weight)));
  return spec;
}

std::string steps_failure(const std::vector<StepReward>& steps, size_t size) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!std::isfinite(steps[i].value)) return fmt::format("reward of step {} is {}", i, steps[i].value);
    if (i > 0 && steps[i].end <= steps[i - 1].end)
      return fmt::format("step {} ends at byte {}, expected behind {}, where the one before it ends", i, steps[i].end,
                         steps[i - 1].end);
    if (steps[i].end > size) return fmt::format("step {} ends at byte {}, expected at most {}", i, steps[i].end, size);
  }
  return "";
}

// Why a result is no reward, or "".
std::string failure(const RewardResult& result, const RewardSample& sample) {
  if (!result.value) return result.error.empty() ? "no reward" : result.error;
  if (!std::isfinite(*result.value)) return fmt::format("reward is {}", *result.value);
  return steps_failure(result.steps, sample.completion.size());
}

// Why a result leaves float's range, in which training reads it, on top of what its sample has already, or "".
std::string range_failure(const RewardResult& result, double weight, double size) {
  const auto problem = [&](const std::string& what, double value) -> std::string {
    size += std::abs(weight * value);
    if (size <= std::numeric_limits<float>::max()) return "";
    return fmt::format("{} is {}: at weight {} the sample's sum is beyond the range of float", what, value, weight);
  };
  std::string found = problem("reward", *result.value);
  for (size_t i = 0; found.empty() && i < result.steps.size(); ++i)
    found = problem(fmt::format("reward of step {}", i), result.steps[i].value);
  return found;
}

// Absolute values of what sample i has so far: as large as any sum of them.
double size_of(const ScoredSamples& scored, size_t i) {
  double size = std::abs(scored.rewards[i]);
  for (const StepReward& step : scored.steps[i]) size += std::abs(step.value);
  return size;
}

void add_steps(std::vector<StepReward>& sum, const std::vector<StepReward>& steps, double weight) {
  for (const StepReward& step : steps) {
    const auto place = std::ranges::lower_bound(sum, step.end, {}, &StepReward::end);
    if (place != sum.end() && place->end == step.end) {
      place->value += weight * step.value;
    } else {
      sum.insert(place, {step.end, weight * step.value});
    }
  }
}

std::string effect_of(const OnError& on_error) {
  return on_error.action == OnError::Action::kDrop ? "dropped" : fmt::format("given {}", on_error.value);
}

// Adds one reward's share to `out`.
void add_reward(const RewardSpec& spec, const std::vector<RewardSample>& samples, ScoredSamples& out) {
  const std::vector<RewardResult> results = spec.reward->score(samples);
  COLLIMATE_CHECK(results.size() == samples.size(), "reward {} gave {} results", spec.name, results.size());
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    std::string problem = failure(results[i], samples[i]);
    if (problem.empty()) problem = range_failure(results[i], spec.weight, size_of(out, i));
    double value = problem.empty() ? *results[i].value : 0.0;
    if (problem.empty()) {
      sum += value;
      ++count;
      add_steps(out.steps[i], results[i].steps, spec.weight);
    } else {
      const std::string message = fmt::format("[reward {}] sample {}: {}", spec.name, samples[i].uid, problem);
      if (out.errors++ == 0) {
        out.first_error = message;
        out.first_effect = effect_of(spec.on_error);
      }
      if (spec.on_error.action == OnError::Action::kStop)
        throw base::RunError(message + "; try on_error: drop, or a value, for this reward");
      if (spec.on_error.action == OnError::Action::kDrop) out.kept[i] = false;
      value = spec.on_error.value;
      if (std::abs(spec.weight * value) + size_of(out, i) > std::numeric_limits<float>::max())
        throw base::RunError(message + fmt::format("; on_error's {} at weight {} takes the sample's sum beyond the "
                                                   "range of float; try a smaller one",
                                                   value, spec.weight));
    }
    out.rewards[i] += static_cast<float>(spec.weight * value);
  }
  if (count > 0) out.means.push_back({spec.name, sum / static_cast<double>(count), count});
}

}  // namespace

std::unique_ptr<Reward> function_reward(Rule rule, bool pure) {
  return std::make_unique<FunctionReward>(std::move(rule), pure);
}

void check_reward(const nlohmann::json& entry, const std::string& where) {
  if (!entry.is_object() || entry.contains("rule") + entry.contains("function") + entry.contains("python") != 1)
    throw InputError(expectation(where, "{rule: NAME}, {function: NAME} or {python: FILE.py:function}", entry.dump(),
                                 "{rule: exact}"));
}

bool deterministic_reward(const nlohmann::json& entry) {
  check_reward(entry);
  const nlohmann::json value = entry.value("deterministic", nlohmann::json(false));
  if (!value.is_boolean()) throw InputError(expectation("reward.deterministic", "true or false", value.dump()));
  return entry.contains("rule") || value.get<bool>();
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
  out.steps.resize(samples.size());
  for (const RewardSpec& spec : rewards) add_reward(spec, samples, out);
  for (size_t i = 0; i < samples.size(); ++i)
    if (!out.kept[i]) out.rewards[i] = 0.F;
  return out;
}

}  // namespace collimate::rlhf
